/* Preloaded into a server: each sync takes MS longer as long as the file PATH is there, and leaves a byte in PATH.count. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void wait_for_disk(void) {
  const char *path = getenv("SLOW_SYNC_PATH");
  if (path == NULL || access(path, F_OK) != 0) return;
  char count[4096];
  strncpy(count, path, sizeof(count) - 8);
  count[sizeof(count) - 8] = '\0';
  strcat(count, ".count");
  int file = open(count, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (file >= 0) {
    if (write(file, ".", 1) != 1) abort();
    close(file);
  }
  long ms = atol(getenv("SLOW_SYNC_MS"));
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  /* A signal, of which the runtime sends itself many, makes no disk quicker. */
  while (nanosleep(&left, &left) != 0 && errno == EINTR);
}

int fsync(int file) {
  wait_for_disk();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
  wait_for_disk();
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
