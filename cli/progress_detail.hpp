#pragma once
// What a running piece of work is just now, where progress is drawn on a terminal.
#include <string_view>

#include "base/progress.hpp"

namespace mlenv::cli {

/// Whether `show_detail` shows anything.
bool shows_details(const Progress& progress);
/// Behind the name of an activity that goes on, in place of what stood there, when it is drawn the
/// next time (`advance`).
void show_detail(Progress& progress, int activity, std::string_view text);

}  // namespace mlenv::cli
