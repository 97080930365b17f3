import { useState } from "react";
import { Field, Select } from "../../ui/field.tsx";
import { Card } from "../../ui/page.tsx";

/** The choice between light and dark, which this browser alone keeps; `theme.js` reads it before the first paint. */
export function Look() {
  const [theme, setTheme] = useState(() => localStorage.getItem("theme") ?? "");
  const choose = (value: string): void => {
    setTheme(value);
    if (value) {
      localStorage.setItem("theme", value);
      document.documentElement.dataset["theme"] = value;
    } else {
      localStorage.removeItem("theme");
      delete document.documentElement.dataset["theme"];
    }
  };
  return (
    <Card title="Look">
      <div className="max-w-xl">
        <Field label="Colours">
          <Select value={theme} onChange={(event) => choose(event.target.value)}>
            <option value="">As this device has it</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
          </Select>
        </Field>
      </div>
    </Card>
  );
}
