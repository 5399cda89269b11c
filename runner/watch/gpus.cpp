#include "runner/watch/gpus.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <algorithm>
#include <array>

#include "base/record_json.hpp"
#include "base/text.hpp"
#include "runner/watch/gpus_nvml.hpp"

namespace mlenv::watch {
namespace {

constexpr std::string_view kGpusReexec = "__gpus";
constexpr RecordKind kWatchGpusKind = {"mlenv.watch-gpus/1", "what GPUs do",
                                       "`mlenv watch` asks for it"};
constexpr std::string_view kGpuKind = "nvidia.com/gpu=";
constexpr std::size_t kLongestAnswer = std::size_t{4} << 20;

/// Up to its end; nothing when the other side is gone or the time is over.
std::optional<std::string> read_answer_line(int fd, std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  std::string line;
  while (!line.ends_with('\n')) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    pollfd wait{fd, POLLIN, 0};
    if (left.count() <= 0 || ::poll(&wait, 1, static_cast<int>(left.count())) <= 0) {
      return std::nullopt;
    }
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count <= 0 || line.size() > kLongestAnswer) return std::nullopt;
    line.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return line;
}

bool is_of_run(const std::vector<std::string>& devices, const GpuNow& gpu) {
  return std::any_of(devices.begin(), devices.end(), [&](const std::string& device) {
    if (!device.starts_with(kGpuKind)) return false;
    // An instance of a split GPU is `0:1`.
    const std::string word = device.substr(kGpuKind.size());
    const std::string whole = word.substr(0, word.find(':'));
    return word == "all" || whole == std::to_string(gpu.index) || (gpu.uuid && word == *gpu.uuid);
  });
}

}  // namespace

GpuReader::GpuReader() = default;
GpuReader::~GpuReader() = default;

void GpuReader::start() {
  Pipe questions = make_pipe();
  Pipe answers = make_pipe();
  Command command{Purpose{"gpu-watch"}};
  command.argv = {own_executable().string(), std::string(kGpusReexec)};
  command.stdin_fd = questions.read_end.get();
  command.stdout_fd = answers.write_end.get();
  const Fd null = open_file("/dev/null", O_WRONLY);
  command.stderr_fd = null.get();
  helper_ = std::make_unique<Child>(command);
  questions_ = std::move(questions.write_end);
  answers_ = std::move(answers.read_end);
}

GpuAnswer GpuReader::give_up(std::string why) {
  constexpr std::chrono::seconds kPause{30};
  helper_.reset();
  not_before_ = std::chrono::steady_clock::now() + kPause;
  last_why_ = std::move(why);
  return {std::nullopt, last_why_};
}

GpuAnswer GpuReader::ask(std::chrono::milliseconds deadline) {
  if (not_before_ && std::chrono::steady_clock::now() < *not_before_) {
    return {std::nullopt, last_why_};
  }
  if (!helper_) start();
  const bool asked = write_quietly(questions_.get(), "?") == 1;
  const std::optional<std::string> line =
      asked ? read_answer_line(answers_.get(), deadline) : std::nullopt;
  if (!line) return give_up("NVIDIA's driver does not answer");
  try {
    GpuAnswer answer = read_record<GpuAnswer>(*line, "NVML", kWatchGpusKind);
    // A library that is absent or sick is not asked again and again.
    return answer.gpus ? answer : give_up(answer.why.value_or("NVML gave no answer"));
  } catch (const Error& error) {
    return give_up(fmt::format("NVML gave no answer: {}", error.what()));
  }
}

std::optional<int> gpus_main(int argc, char** argv) {
  if (argc != 2 || argv[1] != kGpusReexec) return std::nullopt;
  // The library, and what it loads, may print: the answers alone go to stdout.
  const Fd answers{::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)};
  if (!answers || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0) return 1;
  Nvml nvml;
  char question = 0;
  while (::read(STDIN_FILENO, &question, 1) == 1) {
    const std::string line = render_record(nvml.ask(), kWatchGpusKind) + "\n";
    write_all(answers.get(), as_bytes(line));
  }
  return 0;
}

bool has_gpus(const std::vector<std::string>& devices) {
  return std::any_of(devices.begin(), devices.end(),
                     [](const std::string& device) { return device.starts_with(kGpuKind); });
}

std::vector<GpuNow> gpus_of(const std::vector<std::string>& devices, std::vector<GpuNow> all) {
  std::erase_if(all, [&](const GpuNow& gpu) { return !is_of_run(devices, gpu); });
  return all;
}

}  // namespace mlenv::watch
