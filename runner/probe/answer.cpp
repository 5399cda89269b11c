#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "runner/probe/aside.hpp"
#include "runner/probe/nccl.hpp"

namespace mlenv::probe {
namespace {

/// Lines to whoever started this process. Standard output itself becomes standard error, since
/// drivers print.
class Channel {
 public:
  Channel() : fd_(::fcntl(1, F_DUPFD_CLOEXEC, 3)) { ::dup2(2, 1); }
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel() { ::close(fd_); }

  void say(std::string_view word, std::string text) const {
    for (char& c : text) {
      if (c == '\n' || c == '\r') c = ' ';
    }
    std::string line = std::string(word) + ' ' + text + '\n';
    std::string_view left = line;
    while (!left.empty()) {
      const ssize_t count = ::write(fd_, left.data(), left.size());
      if (count < 0 && errno != EINTR) return;
      if (count > 0) left.remove_prefix(static_cast<std::size_t>(count));
    }
  }

 private:
  int fd_;
};

/// All that is asked, in order; every step is reported when it is done.
class Session {
 public:
  Session(const Options& options, const Channel& channel) : options_(options), channel_(channel) {}

  Judgement run() {
    try {
      doing("loading libcuda.so.1");
      const Cuda cuda;
      report_.library = cuda.library.file();
      return with_driver(cuda);
    } catch (const LibraryError& error) {
      return {Verdict::no_driver, error.what(),
              "install NVIDIA's driver, or give the container its GPUs (`--gpus`, CDI)"};
    }
  }

 private:
  Judgement with_driver(const Cuda& cuda) {
    try {
      int version = 0;
      if (cuda.driver_version(&version) == 0 && version > 0) {
        report_.cuda_version =
            std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
      }
      tell();
      doing("cuInit");
      cuda.check(cuda.init(0), "cuInit");
      int count = 0;
      cuda.check(cuda.device_count(&count), "cuDeviceGetCount");
      if (count == 0) return {Verdict::no_gpu, "the driver has no GPU", advice_for(100)};
      ask_gpus(cuda, count);
    } catch (const ApiError& error) {
      return {verdict_for(error.status()), error.what(), advice_for(error.status())};
    }
    Judgement judgement = judge(report_);
    if (judgement.verdict != Verdict::works) judgement.advice = advice_;
    return judgement;
  }

  /// `work` fills in a report that has a `problem`.
  template <class Part, class Work>
  void attempt(Part& part, const Work& work) {
    try {
      work();
    } catch (const ApiError& error) {
      part.problem = error.what();
      if (advice_.empty()) advice_ = advice_for(error.status());
    }
    tell();
  }

  void ask_gpus(const Cuda& cuda, int count) {
    const Doing say = [this](const std::string& what) { doing(what); };
    std::vector<Gpu> gpus(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      GpuReport& gpu = report_.gpus.emplace_back();
      gpu.index = i;
      doing("GPU " + std::to_string(i));
      attempt(gpu, [&] {
        gpus[static_cast<std::size_t>(i)] = describe(cuda, gpu);
        if (options_.across) return;
        measure(cuda, gpus[static_cast<std::size_t>(i)], options_, say, gpu);
      });
    }
    if (!options_.across) ask_pairs(cuda, gpus);
    if (options_.nccl && judge(report_).verdict == Verdict::works) {
      report_.nccl = reduce_over(cuda, gpus, options_, say);
      tell();
    }
    doing("giving the GPUs back");
    for (const Gpu& gpu : gpus) {
      if (gpu.context != nullptr) cuda.release_context(gpu.device);
    }
  }

  void ask_pairs(const Cuda& cuda, const std::vector<Gpu>& gpus) {
    for (std::size_t from = 0; from < gpus.size(); ++from) {
      for (std::size_t to = 0; to < gpus.size(); ++to) {
        // One that does not work is told of already.
        if (from == to || !report_.gpus[from].problem.empty() ||
            !report_.gpus[to].problem.empty()) {
          continue;
        }
        PairReport& pair = report_.pairs.emplace_back();
        pair.from = static_cast<int>(from);
        pair.to = static_cast<int>(to);
        doing("the way from GPU " + std::to_string(from) + " to GPU " + std::to_string(to));
        attempt(pair, [&] { measure(cuda, gpus[from], gpus[to], options_, pair); });
      }
    }
  }

  void doing(const std::string& what) const { channel_.say("doing", what); }
  void tell() const { channel_.say("report", members_of(report_)); }

  const Options& options_;
  const Channel& channel_;
  Report report_;
  std::string advice_;
};

std::string without_tabs(std::string text) {
  for (char& c : text) {
    if (c == '\t') c = ' ';
  }
  return text;
}

}  // namespace

int answer_aside(const std::vector<std::string>& words) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // nobody is left to be answered
  // Compiled kernels are not kept in the home of whoever asks.
  ::setenv("CUDA_CACHE_DISABLE", "1", 1);  // NOLINT(concurrency-mt-unsafe): one thread so far
  const Channel channel;
  const Options options = parse_options(words);
  Session session(options, channel);
  const Judgement judgement = session.run();
  channel.say("verdict", std::string(name_of(judgement.verdict)) + '\t' +
                             without_tabs(judgement.reason) + '\t' + judgement.advice);
  return 0;
}

}  // namespace mlenv::probe
