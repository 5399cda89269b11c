#pragma once
// A watched run as text: the live view, a line for logs, the answer. Nothing here reads or prints.
#include <deque>
#include <string>
#include <vector>

#include "runner/watch/answer.hpp"

namespace mlenv::cli {

struct WatchScreen {
  std::string title;                 ///< which run
  std::string state;                 ///< `running 12 min 4 s`
  std::deque<watch::Sample> newest;  ///< of about a minute, oldest first; may be empty
  std::vector<watch::Finding> so_far;
  std::size_t columns = 80;
  std::size_t rows = 24;
  bool color = false;
};

/// At most `rows` lines of at most `columns` characters; colours are not counted. What there is no
/// room for goes by its weight: first processes, then the pictures.
std::vector<std::string> watch_screen(const WatchScreen& screen);

/// `1.0/8 CPUs, 1.1 GB, 12 MB/s read, …`
std::string watch_line(const watch::Sample& sample);

/// What was seen, what it means, what to try.
std::vector<std::string> watch_answer_text(const watch::Answer& answer);

/// Values from 0 to `full` as blocks of eight heights, the newest at the right end; a value that is
/// not there is a blank.
std::string sparkline(const std::vector<double>& values, double full, std::size_t width);

}  // namespace mlenv::cli
