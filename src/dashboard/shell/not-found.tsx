import { Link } from "@tanstack/react-router";
import { Page } from "../ui/page.tsx";

export function NotFound() {
  return (
    <Page title="There is no such page" intro="It may have been deleted, or the address is not complete.">
      <p>
        <Link to="/" className="text-accent underline">
          Go to the activity
        </Link>
      </p>
    </Page>
  );
}
