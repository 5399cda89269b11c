#pragma once
// Owners: every descriptor and C handle has one, and its destructor ends it.
#include <fcntl.h>
#include <memory>
#include <string_view>
#include <utility>

namespace mlenv {

/// Owns a file descriptor; closes it. Whoever opens passes O_CLOEXEC.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() { reset(); }

  explicit operator bool() const { return fd_ >= 0; }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void reset();
  /// Closes and throws what the kernel says of it: network file systems report here that a write
  /// failed (close(2)). `shown` names the file.
  void close_checked(std::string_view shown);

 private:
  int fd_ = -1;
};

/// `Owned<curl_easy_cleanup>::of<CURL>` is a unique_ptr that frees with that function.
template <auto Free>
struct Owned {
  template <typename T>
  void operator()(T* handle) const {
    Free(handle);
  }
  template <typename T>
  using of = std::unique_ptr<T, Owned>;
};

}  // namespace mlenv
