/* The process that holds the namespaces of a pod: sleeps, and buries orphaned processes. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void stop(int signal_number) {
  (void)signal_number;
  _exit(0);
}

static void bury(int signal_number) {
  (void)signal_number;
  while (waitpid(-1, NULL, WNOHANG) > 0) {
  }
}

int main(void) {
  struct sigaction stopping = {.sa_handler = stop};
  struct sigaction burying = {.sa_handler = bury, .sa_flags = SA_NOCLDSTOP | SA_RESTART};
  if (sigaction(SIGINT, &stopping, NULL) < 0 || sigaction(SIGTERM, &stopping, NULL) < 0 ||
      sigaction(SIGCHLD, &burying, NULL) < 0) {
    return 1;
  }
  for (;;) {
    pause();
  }
}
