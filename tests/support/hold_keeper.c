// hold_keeper stop|half: traces the first process of its container, which is mlenv's keeper there. `stop`: it does nothing any
// more. `half`: three bytes of a frame go to mlenv first. Then this program says `held`, and waits as long as it lives. x86-64.
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int socket_of(void) {
  DIR *folder = opendir("/proc/1/fd");
  for (struct dirent *one; folder != NULL && (one = readdir(folder)) != NULL;) {
    char path[300], target[300] = "";
    snprintf(path, sizeof path, "/proc/1/fd/%s", one->d_name);
    if (readlink(path, target, sizeof target - 1) > 0 && strncmp(target, "socket:", 7) == 0) return atoi(one->d_name);
  }
  return -1;
}

int main(int argc, char **argv) {
  int status;
  if (argc != 2 || ptrace(PTRACE_SEIZE, 1, 0, 0) != 0 || ptrace(PTRACE_INTERRUPT, 1, 0, 0) != 0 || waitpid(1, &status, __WALL) != 1) {
    perror("cannot trace the keeper");
    return 3;
  }
  if (strcmp(argv[1], "half") == 0) {
    struct user_regs_struct was, now;
    ptrace(PTRACE_GETREGS, 1, 0, &was);
    now = was;
    now.rip -= 2;  // the `syscall` in which it waited
    now.rax = 1;   // write
    now.orig_rax = -1;
    now.rdi = (unsigned long)socket_of();
    now.rsi = was.rsp - 512;
    now.rdx = 3;
    ptrace(PTRACE_POKEDATA, 1, (void *)(was.rsp - 512), 0x414141L);
    ptrace(PTRACE_SETREGS, 1, 0, &now);
    for (int i = 0; i < 2; ++i) {  // into the call, and out of it
      ptrace(PTRACE_SYSCALL, 1, 0, 0);
      waitpid(1, &status, __WALL);
    }
    ptrace(PTRACE_GETREGS, 1, 0, &now);
    if (now.rax != 3) {
      printf("nothing was written\n");
      return 4;
    }
  }
  printf("held\n");
  fflush(stdout);
  for (;;) pause();
}
