/*
 * Preloaded into a server: each sync of a file whose path holds ONLY takes MS longer as long as the file PATH is there, and leaves
 * a byte in PATH.count.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int is_meant(int synced) {
  char link[64], name[4096];
  snprintf(link, sizeof(link), "/proc/self/fd/%d", synced);
  ssize_t length = readlink(link, name, sizeof(name) - 1);
  name[length < 0 ? 0 : length] = '\0';
  return strstr(name, getenv("SLOW_SYNC_ONLY")) != NULL;
}

static void wait_for_disk(int synced) {
  const char *path = getenv("SLOW_SYNC_PATH");
  if (path == NULL || access(path, F_OK) != 0 || !is_meant(synced)) return;
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
  wait_for_disk(file);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
  wait_for_disk(file);
  return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}
