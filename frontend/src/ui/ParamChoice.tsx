/** A choice of the page that its address holds; the usual one, which comes first, is left out of it. */
import { setParams } from "../router";
import { Segmented } from "./basics";

interface ParamChoiceProps<T extends string> {
  label: string;
  /** The parameter. */
  name: string;
  /** What can be chosen, and how it is called. */
  options: Readonly<Record<T, string>>;
  value: T;
  usual?: T;
  how?: "push" | "replace";
}

export function ParamChoice<T extends string>({ label, name, options, value, usual, how }: ParamChoiceProps<T>) {
  const known = Object.keys(options) as T[];
  return (
    <Segmented
      label={label}
      value={value}
      options={known.map((each) => ({ value: each, label: options[each] }))}
      onChange={(chosen) => setParams({ [name]: chosen === (usual ?? known[0]) ? null : chosen }, how)}
    />
  );
}
