// In a container: waits for the program that starts each command of it (comm `keeper`), stops it and tries to get
// into it before its filter of system calls is on. Says for each time `seen ATTACHED`, where ATTACHED is how.
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

// Its state (proc_pid_stat(5)) while it is that program; 0: it is not, or is gone.
static char state_of_keeper(int pid) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/%d/stat", pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  const ssize_t count = read(fd, text, sizeof text - 1);
  close(fd);
  const char* const found = count > 0 ? strstr(text, "(keeper) ") : NULL;
  return found != NULL ? found[9] : 0;
}

int main(void) {
  struct stat status;
  printf("mode %o\n", stat("/run/mlenv/keeper", &status) == 0 ? status.st_mode & 0777 : 0);
  puts("ready");
  fflush(stdout);
  DIR* const processes = opendir("/proc");
  for (int last = 0;;) {
    rewinddir(processes);
    const struct dirent* entry;
    while ((entry = readdir(processes)) != NULL) {
      const int pid = atoi(entry->d_name);
      if (pid <= last || state_of_keeper(pid) == 0) continue;
      last = pid;
      kill(pid, SIGSTOP);
      char state;
      do state = state_of_keeper(pid);
      while (state != 0 && state != 'T' && state != 'Z');
      if (state != 'T') {  // it has become the command meanwhile
        kill(pid, SIGCONT);
        continue;
      }
      char path[64];
      snprintf(path, sizeof path, "/proc/%d/mem", pid);
      const int memory = open(path, O_RDWR | O_CLOEXEC);
      const int traced = ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;
      printf("seen %s\n", memory >= 0 ? "memory" : traced ? "traced" : "nothing");
      fflush(stdout);
      if (traced) return 1;
      kill(pid, SIGCONT);
    }
  }
}
