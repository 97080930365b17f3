/** The link to the reference of the API, which is no page of the dashboard. */
export function ReferenceLink() {
  return (
    <a href="/docs" className="text-accent underline">
      the API reference
    </a>
  );
}
