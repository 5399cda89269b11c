#pragma once
// Who is told that a lock is waited for.
#include <functional>
#include <string>

namespace mlenv {

/// From now on `tell` hears, after some seconds, of each lock that this process waits for: a
/// sentence that names it and, where the kernel tells, who holds it. Once, before there are
/// threads.
void on_lock_wait(std::function<void(const std::string&)> tell);

/// The sentence, for an open file that somebody else has locked (flock(2)).
std::string lock_wait_text(int fd, const std::string& path);

/// Tells it, where somebody listens.
void tell_lock_wait(int fd, const std::string& path);

}  // namespace mlenv
