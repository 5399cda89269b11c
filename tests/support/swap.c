// swap NAME OTHER [UNTIL]: exchanges two names as fast as it can, until there is a file UNTIL (else once).
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  if (argc < 3) return 2;
  long swaps = 0;
  do {
    if (renameat2(AT_FDCWD, argv[1], AT_FDCWD, argv[2], RENAME_EXCHANGE) == 0) ++swaps;
  } while (argc > 3 && access(argv[3], F_OK) != 0);
  printf("%ld swaps\n", swaps);
  return 0;
}
