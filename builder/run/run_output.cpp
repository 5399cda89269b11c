#include "builder/run/run_output.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include <fmt/format.h>

namespace mlenv {
namespace {

constexpr std::size_t kShownStepLines = 20;
constexpr std::size_t kLongestLine = 400;
constexpr std::size_t kLeastHidden = 6;

/// As glibc, curl, git, pip and Go say it where there is no network.
constexpr std::array<std::string_view, 8> kNoNetwork = {"Temporary failure in name resolution",
                                                        "Temporary failure resolving",
                                                        "Could not resolve host",
                                                        "could not resolve host",
                                                        "Name or service not known",
                                                        "Network is unreachable",
                                                        "network is unreachable",
                                                        "Failed to establish a new connection"};

std::string_view without_end(std::string_view text) {
  while (!text.empty() && std::strchr(" \t\r\n", text.back()) != nullptr) text.remove_suffix(1);
  return text;
}

std::string last_lines(std::string_view output) {
  output = without_end(output);
  std::vector<std::string_view> lines;
  while (!output.empty() && lines.size() < kShownStepLines) {
    const std::size_t start = output.rfind('\n');
    lines.push_back(start == std::string_view::npos ? output : output.substr(start + 1));
    output = output.substr(0, start == std::string_view::npos ? 0 : start);
  }
  std::string text;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    // Of a line that was drawn over, as progress bars do it, the last state.
    std::string_view shown = without_end(*line);
    shown = shown.substr(shown.rfind('\r') + 1);
    text += fmt::format("\n    {}", shown.substr(0, kLongestLine));
  }
  return text;
}

}  // namespace

Redaction::Redaction(const std::map<std::string, std::string>& secrets) {
  for (const auto& [id, content] : secrets) {
    hidden_.emplace_back(without_end(content));
    for (std::string_view rest = content; !rest.empty();) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      hidden_.emplace_back(without_end(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::erase_if(hidden_, [](const std::string& text) { return text.size() < kLeastHidden; });
  std::sort(hidden_.begin(), hidden_.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
}

std::string Redaction::operator()(std::string text) const {
  for (const std::string& hidden : hidden_) {
    for (std::size_t at = text.find(hidden); at != std::string::npos; at = text.find(hidden, at)) {
      text.replace(at, hidden.size(), "***");
      at += 3;
    }
  }
  return text;
}

Error step_error(const FailedStep& failed) {
  Error error = failure("step-failed", "{} failed", failed.title);
  if (!failed.place.empty()) error.because("the step stands in " + failed.place);
  error.because(failed.exit.signalled
                    ? fmt::format("it was ended by signal {}", failed.exit.code - 128)
                    : fmt::format("it ended with status {}", failed.exit.code));
  const std::string lines = last_lines(failed.output);
  error.because(lines.empty() ? "it printed nothing" : "its last lines were:" + lines);
  const bool missed = std::any_of(kNoNetwork.begin(), kNoNetwork.end(), [&](std::string_view text) {
    return failed.output.find(text) != std::string::npos;
  });
  if (missed && !failed.network) {
    error.hint("steps have no network unless they ask: `- {run: …, network: true}`");
  }
  return error;
}

}  // namespace mlenv
