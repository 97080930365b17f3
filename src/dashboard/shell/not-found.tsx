import { Link } from "@tanstack/react-router";
import { Empty } from "../ui/page.tsx";

export function NotFound() {
  return (
    <div className="p-6">
      <Empty
        title="There is no such page"
        action={
          <Link to="/" className="underline">
            Go to the activity
          </Link>
        }
      >
        It may have been deleted, or the address is not complete.
      </Empty>
    </div>
  );
}
