#pragma once
// The driver is asked in a process of its own: a sick one hangs or crashes whoever asks it.
//
// That process writes lines: `doing WHAT` before what may hang, `report MEMBERS` whenever there is
// more to report (`members_of`), and at the end `verdict NAME<tab>REASON<tab>ADVICE`.
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "runner/probe/report.hpp"

namespace mlenv::probe {

struct Answer {
  Judgement judgement;
  std::string members;  ///< of the last report
};

/// Of those lines. `ending` is what became of the process (`crashed (signal 11)`), told as the
/// reason where no verdict came.
Answer read_lines(std::string_view lines, std::string_view ending);

/// Starts this program again with `words` (argv[0] among them) and reads what it says; after
/// `timeout` it is killed. Its standard output is those lines alone, what libraries print goes
/// to standard error.
Answer ask_aside(const std::vector<std::string>& words, std::chrono::seconds timeout);

/// The process itself: asks the driver as `words` (options) say. Its exit status says nothing.
int answer_aside(const std::vector<std::string>& words);

}  // namespace mlenv::probe
