#include <memory>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/json.hpp"
#include "cli/command_tree.hpp"
#include "cli/probe_text.hpp"
#include "cli/ui.hpp"
#include "runner/probe/aside.hpp"
#include "runner/probe/options.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kReexec = "__probe";

int probe_command(const probe::Options& options, const Ui& ui) {
  std::vector<std::string> words = {"mlenv", std::string(kReexec)};
  for (std::string& word : probe::words_of(options)) words.push_back(std::move(word));
  const probe::Answer answer = probe::ask_aside(words, options.timeout);
  const auto json = parse_json(probe::answer_of(answer.judgement, answer.members), "the probe");
  if (ui.options.json) {
    ui.answer(canonical(json));
  } else {
    ui.answer_lines(probe_text(json));
  }
  return probe::exit_status(answer.judgement.verdict);
}

}  // namespace

std::optional<int> probe_main(int argc, char** argv) {
  if (argc < 2 || argv[1] != kReexec) return std::nullopt;
  return probe::answer_aside({argv + 2, argv + argc});
}

Action declare_probe(CLI::App& app) {
  struct Given {
    probe::Options options;
    std::uint64_t timeout = 120;
  };
  constexpr std::uint64_t kMostMebibytes = 16384;
  constexpr std::uint64_t kLongest = 86400;
  auto given = std::make_shared<Given>();
  app.add_flag("--nccl", given->options.nccl, "an all-reduce over all GPUs, too");
  take_word_of(app.add_option("--nccl-library", given->options.nccl_library,
                              "NCCL's library, where the loader does not find it"),
               WordKind::file);
  app.add_option("--size", given->options.mebibytes, "MiB of each copy")
      ->check(CLI::Range(std::uint64_t{1}, kMostMebibytes));
  app.add_option("--timeout", given->timeout, "seconds after which a silent driver is given up")
      ->check(CLI::Range(std::uint64_t{1}, kLongest));
  app.footer("example: mlenv probe --nccl");
  return [given](Ui& ui) {
    given->options.nccl |= !given->options.nccl_library.empty();
    given->options.timeout = std::chrono::seconds(given->timeout);
    return probe_command(given->options, ui);
  };
}

}  // namespace mlenv::cli
