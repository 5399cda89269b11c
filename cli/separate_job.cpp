#include <set>

#include "cli/run_job.hpp"
#include "cli/run_matrix.hpp"
#include "cli/run_options.hpp"
#include "cli/ui.hpp"

namespace mlenv::cli {

std::vector<std::string> separate_job(std::vector<std::string> words) {
  // Options that take the next word; `-eK=V` and `--env=K=V` take none.
  static const std::set<std::string, std::less<>> takes_word = [] {
    std::set<std::string, std::less<>> all = {"-v",
                                              "--volume",
                                              "-e",
                                              "--env",
                                              "-w",
                                              "--workdir",
                                              "--runtime",
                                              "--gpus",
                                              "--device",
                                              "--color",
                                              "--progress",
                                              "--name",
                                              "--timeout",
                                              "--restart",
                                              "--stop-signal",
                                              "--stop-timeout",
                                              "--log-size",
                                              "--seed",
                                              "--from",
                                              "--outputs"};
    for (const std::string_view one : run_options_with_words()) all.emplace(one);
    for (const std::string_view one : kMatrixOptionsWithWords) all.emplace(one);
    for (const std::string_view one : kJobOptionsWithWords) all.emplace(one);
    return all;
  }();
  constexpr std::size_t kBeforeJob = 2;  // `run` and IMAGE, `exec` and RUN
  std::size_t plain = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") break;
    if (word.size() > 1 && word.front() == '-') {
      if (takes_word.contains(word)) ++i;
    } else if (plain == 0 && word != "run" && word != "exec") {
      break;
    } else if (plain++ == kBeforeJob) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(i), "--");
      break;
    }
  }
  return words;
}

}  // namespace mlenv::cli
