// A program without shared libraries opens none: glibc's own way would need the very glibc that it
// was linked with on the node. Whoever asks is told so, and has what it wanted as unknown.
#include <dlfcn.h>
#include <link.h>

extern "C" {

void* dlopen(const char* /*file*/, int /*mode*/) noexcept { return nullptr; }
void* dlsym(void* /*handle*/, const char* /*name*/) noexcept { return nullptr; }
int dlclose(void* /*handle*/) noexcept { return 0; }
int dladdr(const void* /*address*/, Dl_info* /*info*/) noexcept { return 0; }
int dlinfo(void* /*handle*/, int /*request*/, void* /*info*/) noexcept { return -1; }
char* dlerror() noexcept {
  // As POSIX has it, the caller may not change it.
  static char text[] = "mlenv-node opens no shared libraries";  // NOLINT(*-avoid-c-arrays)
  return text;
}

}  // extern "C"
