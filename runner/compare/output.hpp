#pragma once
// What measuring programs print, as figures. Plain functions of their text.
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace mlenv::compare {

/// Lines `mlenv-compare WORD …` among whatever else a script's framework prints.
struct Said {
  std::map<std::string, double> values;      ///< by row
  std::map<std::string, std::string> texts;  ///< by row
  std::map<std::string, std::string> whys;   ///< by row: it could not be measured
};
Said read_said(std::string_view output);
/// `user` in `mlenv-compare mark user`; nullopt for another line.
std::optional<std::string> read_mark(std::string_view line);

/// What a command took, as command.py says it on standard error.
struct Used {
  double cpu = 0;     ///< seconds
  double memory = 0;  ///< bytes
};
std::optional<Used> read_used(std::string_view err);

/// What one of several tools printed, and how it ended.
struct ToolSaid {
  std::string text;
  std::optional<int> status;  ///< nothing: it did not end
};
/// By row, of the output of tools_script.
std::map<std::string, ToolSaid> read_tools(std::string_view output);

/// Of a row that a tool measures, in the row's unit; nullopt where the text does not have it.
std::optional<double> read_tool(std::string_view row, std::string_view output);

/// The last line that says something; of a JSON answer the error in it.
std::string complaint_of(std::string_view output);

/// MemAvailable of /proc/meminfo.
std::optional<double> available_bytes(std::string_view meminfo);

/// The first line of /proc/stat: jiffies that were busy, stolen by a hypervisor, and all.
struct CpuTimes {
  double busy = 0;
  double steal = 0;
  double all = 0;
};
std::optional<CpuTimes> read_cpu_times(std::string_view stat);

}  // namespace mlenv::compare
