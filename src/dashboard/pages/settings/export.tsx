import { useMutation } from "@tanstack/react-query";
import { Download } from "lucide-react";
import { useState } from "react";
import { bytesOf } from "../../api/client.ts";
import { Button } from "../../ui/button.tsx";
import { sizeOf } from "../../ui/files.tsx";
import { Fault } from "../../ui/notice.tsx";

/**
 * The download of all that the account has as one file. It shows how much has come, since nobody knows the size
 * before.
 */
export function Export() {
  const [come, setCome] = useState(0);
  const fetching = useMutation({
    mutationFn: () => bytesOf("/auth/export", setCome),
    onSuccess: ({ name, bytes }) => save(name, bytes),
  });
  return (
    <div className="grid justify-items-start gap-2">
      <p className="text-sm text-soft">
        One zip with your messages, files, contexts and settings, and a README that says what is what. Secrets
        are not in it.
      </p>
      <Button icon={<Download />} busy={fetching.isPending} onClick={() => fetching.mutate()}>
        Download everything
      </Button>
      <p role="status" className="text-sm text-soft empty:hidden">
        {fetching.isPending && `Collecting it: ${sizeOf(come)} so far.`}
        {fetching.isSuccess && `Done: ${sizeOf(come)}.`}
      </p>
      <Fault error={fetching.error} />
    </div>
  );
}

function save(name: string, bytes: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(bytes);
  link.download = name;
  link.click();
  // By then the browser has begun to save the file.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
