#pragma once
// What mlenv and its minder say to each other: packets of runner/local/control.hpp, a request and
// its answer.
#include <string>
#include <string_view>

#include "runner/compare/minder.hpp"

namespace mlenv::compare::minding {

inline constexpr std::string_view kArgument = "__minder";
inline constexpr int kSocket = 3;
/// That what was asked to end has for it.
inline constexpr std::chrono::seconds kMoment{10};

std::string_view word_of(Ending ending);

/// Three files come with it.
std::string start_request(const Command& command);
std::string end_request(pid_t pid);

struct Request {
  std::optional<Command> start;  ///< argv, env and folder
  pid_t end = -1;
};
Request parse_request(std::string_view bytes);

struct Answer {
  std::string why;  ///< it could not be done
  pid_t pid = -1;
  std::int64_t at = 0;  ///< nanoseconds of the steady clock
  Exit exit;
};
std::string render_answer(const Answer& answer);
/// Of no bytes: that the minder is gone.
Answer parse_answer(std::string_view bytes);

}  // namespace mlenv::compare::minding
