#include "base/progress.hpp"

#include <exception>

namespace mlenv {

Activity::Activity(Progress& progress, std::string_view name, std::uint64_t total,
                   std::string_view unit)
    : progress_(progress),
      number_(progress.begin(name, total, unit)),
      exceptions_(std::uncaught_exceptions()) {}

Activity::~Activity() {
  const bool failed = std::uncaught_exceptions() > exceptions_;
  progress_.end(number_, failed ? "failed" : note_);
}

}  // namespace mlenv
