import { Link } from "@tanstack/react-router";
import { Star as Picture } from "lucide-react";
import { useState } from "react";
import { testSet } from "../../api/lists.ts";
import type { Story } from "../../api/shapes.ts";
import { Button } from "../../ui/button.tsx";
import { ExpectedDialog } from "./expected-dialog.tsx";
import { expectedWords } from "./words.ts";

/** The star of a message, and what its answer should be. */
export function Star({ story: { message_id, expected, result } }: { story: Story }) {
  const [asks, setAsks] = useState(false);
  return (
    <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <Button
        look="quiet"
        icon={<Picture aria-hidden className={expected === null ? "" : "fill-current"} />}
        onClick={() => setAsks(true)}
      >
        {expected === null ? "Star it as a test" : "Expected answer"}
      </Button>
      {expected !== null && (
        <>
          <span className="min-w-0 wrap-anywhere">It {expectedWords(expected)}.</span>
          <Link to="/test-set" className="text-accent underline">
            The test set
          </Link>
        </>
      )}
      {asks && (
        <ExpectedDialog
          message_id={message_id}
          expected={expected}
          answer={result}
          touches={[["story", message_id], testSet.queryKey]}
          onClose={() => setAsks(false)}
        />
      )}
    </div>
  );
}
