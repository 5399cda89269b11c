// mlenv-gpu-probe: what `mlenv probe` does, as a program of its own that needs a C library and
// nothing else, for containers that hold no mlenv. Prints mlenv.gpu-probe/1; exit status 0 works, 3
// does not, 2 wrong usage.
#include <unistd.h>
#include <stdexcept>

#include "base/descriptors.hpp"
#include "runner/probe/aside.hpp"
#include "runner/probe/options.hpp"

namespace {

constexpr const char* kAside = "--aside";

int end_with(int fd, std::string text, int status) {
  text += '\n';
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? status : 1;
}

}  // namespace

int main(int argc, char** argv) {
  namespace probe = mlenv::probe;
  if (!mlenv::standard_streams()) return 1;
  const std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (!words.empty() && words.front() == kAside) {
      return probe::answer_aside({words.begin() + 1, words.end()});
    }
    const probe::Options options = probe::parse_options(words);
    std::vector<std::string> again = {"mlenv-gpu-probe", kAside};
    again.insert(again.end(), words.begin(), words.end());
    const probe::Answer answer = probe::ask_aside(again, options.timeout);
    return end_with(1, probe::answer_of(answer.judgement, answer.members),
                    probe::exit_status(answer.judgement.verdict));
  } catch (const std::invalid_argument& error) {
    return end_with(2, std::string("mlenv-gpu-probe: ") + error.what(), 2);
  }
}
