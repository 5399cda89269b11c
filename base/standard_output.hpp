#pragma once
// Standard output of this process, where answers go. A write that fails is remembered, nothing is
// written after it, and the program says so at its end: a full disk never passes for an answer.
#include <string_view>

#include "base/error.hpp"

namespace mlenv {

/// Writes all of it, or remembers why not. Where nobody reads any more, the process ends as by
/// SIGPIPE.
void write_answer(std::string_view bytes) noexcept;

/// Remembers that something of the output was lost in another way.
void answer_failed(int error_number) noexcept;

/// errno of what failed first; 0: nothing.
int answer_error() noexcept;

/// The same after asking the file system: network file systems say it at the end (close(2)).
int settle_answers() noexcept;

/// `answer-lost`, for what failed.
Error lost_answer();

}  // namespace mlenv
