// Names of users by /etc/passwd alone, and no names of hosts: glibc's own functions open shared
// libraries for that (nss(5)), which a program without any cannot.
#include <netdb.h>
#include <pwd.h>
#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/handle.hpp"

namespace {

/// 0 with nullptr in `found`: there is none.
template <class Wanted>
int find_user(passwd* into, char* buffer, std::size_t size, passwd** found, const Wanted& wanted) {
  *found = nullptr;
  const mlenv::Owned<std::fclose>::of<std::FILE> file{std::fopen("/etc/passwd", "re")};
  if (!file) return errno == ENOENT ? 0 : errno;
  passwd* entry = nullptr;
  int error = 0;
  while ((error = ::fgetpwent_r(file.get(), into, buffer, size, &entry)) == 0) {
    if (!wanted(*entry)) continue;
    *found = entry;
    return 0;
  }
  return error == ENOENT ? 0 : error;
}

}  // namespace

extern "C" {

int getpwuid_r(uid_t uid, passwd* into, char* buffer, std::size_t size, passwd** found) {
  return find_user(into, buffer, size, found, [&](const passwd& one) { return one.pw_uid == uid; });
}

// libcrypto's, which nothing here asks for a connection.
int getaddrinfo(const char* /*host*/, const char* /*service*/, const addrinfo* /*hints*/,
                addrinfo** result) {
  *result = nullptr;
  return EAI_FAIL;
}
void freeaddrinfo(addrinfo* /*list*/) noexcept {}
const char* gai_strerror(int /*error*/) noexcept { return "mlenv-node asks no name service"; }
hostent* gethostbyname(const char* /*name*/) { return nullptr; }

}  // extern "C"
