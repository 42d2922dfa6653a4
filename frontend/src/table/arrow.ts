/** The reader of Arrow streams; a chunk of its own, loaded with the first table that needs it. */
export { tableFromIPC } from "apache-arrow";
