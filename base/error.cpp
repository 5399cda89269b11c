#include "base/error.hpp"

#include <cerrno>
#include <system_error>

namespace mlenv {

Error::Error(Kind kind, std::string code, std::string headline)
    : kind_(kind), code_(std::move(code)), frames_{std::move(headline)} {
  join();
}

Error& Error::because(std::string cause) & {
  frames_.push_back(std::move(cause));
  join();
  return *this;
}

Error& Error::hint(std::string action) & {
  if (hint_.empty()) hint_ = std::move(action);
  return *this;
}

Error& Error::remedy(Remedy change) & {
  if (remedy_.empty()) remedy_ = std::move(change);
  return *this;
}

Error Error::with_hint(std::string action) const {
  Error other = *this;
  other.hint_ = std::move(action);
  return other;
}

void Error::while_doing(std::string intent) {
  frames_.insert(frames_.begin(), std::move(intent));
  join();
}

void Error::join() {
  text_.clear();
  for (const std::string& frame : frames_) {
    if (!text_.empty()) text_ += ": ";
    text_ += frame;
  }
}

std::string errno_text(int error_number) { return std::generic_category().message(error_number); }

Error make_os_error(int error_number, std::string headline) {
  std::string code = "io";
  if (error_number == ENOSPC || error_number == EDQUOT) code = "no-space";
  if (error_number == EACCES || error_number == EPERM) code = "permission";
  if (error_number == ENOENT) code = "absent";
  Error error{Kind::failed, std::move(code), std::move(headline)};
  error.because(errno_text(error_number));
  if (error_number == ENOSPC || error_number == EDQUOT) {
    error.hint("free some space, then run the same command again; what is finished is kept");
  }
  if (error_number == EMFILE) error.hint("let a process open more files: `ulimit -n 1024`");
  return error;
}

}  // namespace mlenv
