import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { classes } from "./class-names.ts";

interface MenuProps {
  /** The button that opens it. */
  button: ReactNode;
  items: { id: string; label: ReactNode; onSelect: () => void; danger?: boolean; disabled?: boolean }[];
}

export function Menu({ button, items }: MenuProps) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{button}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          align="end"
          sideOffset={4}
          className="z-20 min-w-44 rounded-lg border border-line bg-raised p-1 shadow-lg"
        >
          {items.map(({ id, label, onSelect, danger, disabled }) => (
            <DropdownMenu.Item
              key={id}
              disabled={disabled ?? false}
              onSelect={onSelect}
              className={classes(
                "flex cursor-pointer items-center gap-2 rounded-md px-3 py-1.5 text-sm outline-none data-[disabled]:opacity-50 data-[highlighted]:bg-hover [&_svg]:size-4",
                danger && "text-bad",
              )}
            >
              {label}
            </DropdownMenu.Item>
          ))}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}
