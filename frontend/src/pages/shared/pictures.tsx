/** Pictures that a report carries, since it has no timeline to lead to; every name in them is escaped. */

interface Carried {
  readonly svg: string;
  readonly caption: string;
  /** Whether it is the evidence of an advice. */
  readonly advice: boolean;
}

/** By title, or by the id of the advice. */
export type Pictures = ReadonlyMap<string, Carried>;

export function Picture({ of: { svg, caption } }: { of: Carried }) {
  return (
    <figure class="carried">
      <div class="carried-scroll" tabIndex={0} dangerouslySetInnerHTML={{ __html: svg }} />
      {caption && <figcaption class="muted">{caption}</figcaption>}
    </figure>
  );
}
