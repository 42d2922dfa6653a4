/** What the page hands to the timeline; everything else lives in the address (see `route` in ../router). */
export interface TimelineProps {
  session: string;
  host: string | null;
}

export function Timeline({ session, host }: TimelineProps) {
  return (
    <p>
      {session} {host}
    </p>
  );
}

export default Timeline;
