#include "builder/bytecode/compiler.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "builder/bytecode/marshal.hpp"

namespace mlenv {
namespace {

constexpr std::size_t kPycHeaderBytes = 16;  // magic, flags, source hash (PEP 552)
constexpr std::chrono::seconds kStall{120};
constexpr std::chrono::seconds kFarewell{2};

// Request: two little-endian u32 lengths, path, source. Answer: one u32 length, .pyc bytes.
constexpr std::string_view kWorkerScript = R"py(
import gc, importlib.util, marshal, posix, sys, warnings
warnings.simplefilter("ignore")
gc.disable()
take, put = sys.stdin.buffer.read, sys.stdout.buffer
head = importlib.util.MAGIC_NUMBER + b"\1\0\0\0"
while True:
    sizes = take(8)
    if len(sizes) < 8:
        break
    path = take(int.from_bytes(sizes[:4], "little")).decode("utf-8", "surrogateescape")
    source = take(int.from_bytes(sizes[4:], "little"))
    try:
        code = compile(source, path, "exec", dont_inherit=True, optimize=0)
        answer = head + importlib.util.source_hash(source) + marshal.dumps(code)
    except Exception:  # as compileall: a file that is no program stays without bytecode
        answer = b""
    put.write(len(answer).to_bytes(4, "little") + answer)
    put.flush()
posix._exit(0)
)py";

// A parse allocates and frees megabytes of small blocks. Kept between files and in huge pages, they
// cost 5 % less processor time. Another C library ignores it (glibc manual, "Memory Allocation
// Tunables").
constexpr std::string_view kMallocTunables =
    "GLIBC_TUNABLES=glibc.malloc.hugetlb=1:glibc.malloc.trim_threshold=1073741824:"
    "glibc.malloc.mmap_threshold=104857600:glibc.malloc.top_pad=16777216";

void append_length(std::string& out, std::size_t length) {
  const auto narrow = static_cast<std::uint32_t>(length);
  std::array<char, 4> bytes{};
  std::memcpy(bytes.data(), &narrow, bytes.size());
  out.append(bytes.data(), bytes.size());
}

void set_nonblocking(int fd) {
  if (::fcntl(fd, F_SETFL, O_NONBLOCK) != 0) throw os_error(errno, "cannot set up a pipe");
}

}  // namespace

class BytecodeCompiler::Worker {
 public:
  Worker(const fs::path& base, const std::string& interpreter) {
    Pipe in = make_pipe();
    Pipe out = make_pipe();
    SandboxCommand command;
    command.root = base;
    command.read_only_root = true;
    command.argv = {interpreter, "-I", "-S", "-B", "-c", std::string(kWorkerScript)};
    command.env = {"PATH=/usr/bin:/bin", "LC_ALL=C.UTF-8", std::string(kMallocTunables)};
    command.stdin_fd = in.read_end.get();
    command.stdout_fd = out.write_end.get();
    sandbox_ = std::make_unique<Sandbox>(command);
    in_ = std::move(in.write_end);
    out_ = std::move(out.read_end);
    set_nonblocking(in_.get());
  }

  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  /// Ends it by the end of its input, and waits: its processor time then counts as ours (wait4(2)).
  ~Worker() {
    in_.reset();
    try {
      (void)sandbox_->wait(kFarewell);
    } catch (const Error& error) {
      log::debug("an interpreter did not end: {}", error.what());
    }
  }

  /// Sends all and receives all at once: neither side can block the other.
  std::vector<std::string> exchange(const std::vector<PythonSource>& sources) {
    std::vector<std::string> answers;
    std::size_t next = 0;
    std::string outgoing;
    std::size_t sent = 0;
    std::string incoming;
    while (answers.size() < sources.size()) {
      if (sent == outgoing.size() && next < sources.size()) {
        outgoing.clear();
        sent = 0;
        const PythonSource& source = sources[next++];
        append_length(outgoing, source.path.size());
        append_length(outgoing, source.text.size());
        outgoing += source.path;
        outgoing += source.text;
      }
      std::array<pollfd, 2> fds{
          {{out_.get(), POLLIN, 0}, {sent < outgoing.size() ? in_.get() : -1, POLLOUT, 0}}};
      const int timeout = static_cast<int>(std::chrono::milliseconds{kStall}.count());
      const int ready = ::poll(fds.data(), fds.size(), timeout);
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) throw failed("it gave no answer for two minutes");
      if (fds[1].revents != 0) sent += send(std::string_view(outgoing).substr(sent));
      if (fds[0].revents != 0) receive(incoming);
      take_answers(incoming, answers);
    }
    return answers;
  }

 private:
  static Error failed(std::string why) {
    return failure("bytecode-failed", "the image's Python did not compile its packages")
        .because(std::move(why))
        .hint("set `bytecode: false` in the recipe to go without");
  }

  std::size_t send(std::string_view bytes) {
    const ssize_t count = write_quietly(in_.get(), bytes);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN || errno == EINTR) return 0;
    throw failed("the interpreter ended: " + errno_text(errno));
  }

  void receive(std::string& incoming) {
    std::array<char, 65536> buffer{};
    const ssize_t count = ::read(out_.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) return;
    if (count <= 0) throw failed("the interpreter ended early");
    incoming.append(buffer.data(), static_cast<std::size_t>(count));
  }

  static void take_answers(std::string& incoming, std::vector<std::string>& answers) {
    std::size_t at = 0;
    while (incoming.size() - at >= 4) {
      std::uint32_t length = 0;
      std::memcpy(&length, incoming.data() + at, 4);
      if (incoming.size() - at - 4 < length) break;
      answers.push_back(incoming.substr(at + 4, length));
      at += 4 + length;
    }
    incoming.erase(0, at);
  }

  Fd in_;
  Fd out_;
  std::unique_ptr<Sandbox> sandbox_;
};

BytecodeCompiler::BytecodeCompiler(fs::path base, std::string interpreter, int python_minor,
                                   unsigned workers)
    : base_(std::move(base)),
      interpreter_(std::move(interpreter)),
      python_minor_(python_minor),
      free_slots_(workers) {}

BytecodeCompiler::~BytecodeCompiler() = default;

std::unique_ptr<BytecodeCompiler::Worker> BytecodeCompiler::borrow() {
  {
    std::unique_lock lock{mutex_};
    freed_.wait(lock, [this] { return !idle_.empty() || free_slots_ > 0; });
    if (!idle_.empty()) {
      std::unique_ptr<Worker> worker = std::move(idle_.back());
      idle_.pop_back();
      return worker;
    }
    --free_slots_;
  }
  return std::make_unique<Worker>(base_, interpreter_);
}

void BytecodeCompiler::give_back(std::unique_ptr<Worker> worker) {
  {
    const std::lock_guard lock{mutex_};
    idle_.push_back(std::move(worker));
  }
  freed_.notify_one();
}

std::vector<std::string> BytecodeCompiler::exchange(const std::vector<PythonSource>& sources) {
  std::unique_ptr<Worker> worker;
  try {
    worker = borrow();
    std::vector<std::string> compiled = worker->exchange(sources);
    give_back(std::move(worker));
    return compiled;
  } catch (const Error&) {
    // The broken worker is dropped; another may take its place.
    const std::lock_guard lock{mutex_};
    ++free_slots_;
    freed_.notify_one();
    throw;
  }
}

std::vector<std::string> BytecodeCompiler::compile(const std::vector<PythonSource>& sources) {
  std::vector<std::string> compiled = exchange(sources);
  for (std::string& pyc : compiled) {
    if (pyc.empty()) continue;
    if (pyc.size() < kPycHeaderBytes) throw failure("bytecode-failed", "a .pyc without header");
    pyc = pyc.substr(0, kPycHeaderBytes) +
          canonical_marshal(as_bytes(std::string_view(pyc).substr(kPycHeaderBytes)), python_minor_);
  }
  return compiled;
}

}  // namespace mlenv
