/* A time of day that is wrong by what a file says, for the program that this is preloaded into.
 *
 * LAPTIME_CLOCK_FILE has the seconds by which it is fast; it is read again each second. How long
 * something takes is never wrong: only the time of day is another one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static _Atomic long long fast_nanoseconds;
static _Atomic time_t read_at = -1;

static long long read_offset(void)
{
  char text[64];
  const char *path = getenv("LAPTIME_CLOCK_FILE");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0)
    return 0;
  ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = 0;
  return (long long)(strtod(text, NULL) * SECOND);
}

static long long offset(void)
{
  struct timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  if (now.tv_sec != read_at) {
    read_at = now.tv_sec;
    fast_nanoseconds = read_offset();
  }
  return fast_nanoseconds;
}

int clock_gettime(clockid_t clock, struct timespec *found)
{
  if (syscall(SYS_clock_gettime, clock, found) != 0)
    return -1;
  if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) {
    long long nanoseconds = found->tv_nsec + offset();
    long long seconds = nanoseconds / SECOND - (nanoseconds % SECOND < 0);
    found->tv_sec += seconds;
    found->tv_nsec = nanoseconds - seconds * SECOND;
  }
  return 0;
}

int gettimeofday(struct timeval *restrict found, void *restrict zone)
{
  struct timespec now;
  (void)zone;
  clock_gettime(CLOCK_REALTIME, &now);
  found->tv_sec = now.tv_sec;
  found->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *found)
{
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (found)
    *found = now.tv_sec;
  return now.tv_sec;
}
