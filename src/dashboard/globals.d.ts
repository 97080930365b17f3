/** The types of the answers come from the server's files, which run where a Worker can do more than in a browser. */
interface Worker {
  ref(): void;
  unref(): void;
}
