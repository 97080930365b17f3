import { type InputHTMLAttributes, useEffect, useEffectEvent, useState } from "react";
import { Input } from "./field.tsx";

/** After the last key. */
const PAUSE_MS = 300;

type TypedProps = InputHTMLAttributes<HTMLInputElement> & { value: string; onTyped: (text: string) => void };

/** A text that counts once its typing pauses, or at Enter. */
export function Typed({ value, onTyped, ...rest }: TypedProps) {
  const [text, setText] = useState(value);
  const [told, setTold] = useState(value);
  const [seen, setSeen] = useState(value);
  if (value !== seen) {
    setSeen(value);
    // Not our own words coming back, but somebody else's, such as of the button that clears all.
    if (value !== told) {
      setTold(value);
      setText(value);
    }
  }
  const tell = (typed: string): void => {
    const words = typed.trim();
    if (words === told) return;
    setTold(words);
    onTyped(words);
  };
  const tellOfPause = useEffectEvent(tell);
  useEffect(() => {
    const timer = setTimeout(() => tellOfPause(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <Input
      {...rest}
      value={text}
      onChange={(event) => setText(event.target.value)}
      onKeyDown={(event) => event.key === "Enter" && tell(text)}
    />
  );
}
