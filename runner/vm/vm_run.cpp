#include "runner/vm/vm_run.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/process.hpp"
#include "base/text.hpp"
#include "runner/engine/engine_exec.hpp"
#include "runner/engine/engine_files.hpp"
#include "runner/engine/kept_process.hpp"
#include "runner/local/held_mounts.hpp"
#include "runner/local/home.hpp"
#include "runner/local/job.hpp"
#include "runner/local/job_checks.hpp"
#include "runner/local/job_user.hpp"
#include "runner/local/machine.hpp"
#include "runner/local/network.hpp"
#include "runner/local/own_results.hpp"
#include "runner/local/run_names.hpp"
#include "runner/local/terminal.hpp"
#include "runner/local/throwaway.hpp"
#include "runner/vm/disk/scratch_disk.hpp"
#include "runner/vm/guest_files.hpp"
#include "runner/vm/initial_disk.hpp"
#include "runner/vm/setup.hpp"
#include "runner/vm/shares.hpp"

namespace mlenv {
namespace {

/// With an answer of a guest that has said hello: an emulated one, on a machine that is busy.
constexpr std::chrono::seconds kVmPatience{120};

/// From here on children of this process are in the namespace, and end with it.
void enter_for_children(const PidNamespace& processes) {
  if (::setns(processes.fd(), CLONE_NEWPID) != 0) throw os_error(errno, "cannot enter a namespace");
}

class VmJob final : public WatchedJob {
 public:
  explicit VmJob(const Keeper& keeper) : keeper_(keeper) {}
  int ended_fd() const override { return keeper_.fd(); }
  void signal(int number) override { keeper_.signal(number); }
  void kill() override { keeper_.signal(SIGKILL); }
  Elsewhere elsewhere() const override {
    return {"they are in a virtual machine, which has a kernel of its own",
            "`mlenv exec RUN -- top -b -n 1` asks in there, where the image has `top`"};
  }

 private:
  const Keeper& keeper_;
};

}  // namespace

/// What the run writes into its image beforehand: seen here at once, and done again in the guest.
class VmRun::Files final : public ImageWriter {
 public:
  explicit Files(const fs::path& root) : root_(root) {}
  void write(const std::string& path, std::string_view text, mode_t mode) override {
    root_.write(path, text, mode);
    written_.push_back({path, std::string(text), mode});
  }
  void make_folder(const std::string& path, std::uint32_t uid, std::uint32_t gid) override {
    folders_.push_back({path, uid, gid});
  }
  void repeat(ImageWriter& writer) const {
    for (const Folder& one : folders_) writer.make_folder(one.path, one.uid, one.gid);
    for (const Written& one : written_) writer.write(one.path, one.text, one.mode);
  }

 private:
  struct Written {
    std::string path;
    std::string text;
    mode_t mode;
  };
  struct Folder {
    std::string path;
    std::uint32_t uid;
    std::uint32_t gid;
  };
  ImageRoot root_;
  std::vector<Written> written_;
  std::vector<Folder> folders_;
};

VmRun::VmRun(const LocalRun& run, int socket, int signals) : run_(run), watch_{socket, signals} {
  check_ports(run.options.ports);
  identity_ = enter_namespaces();
  const fs::path root =
      mount_overlay({run.trees, run.scratch, identity_ != Identity::root, run.overlay});
  folder_ = mount_private_folder(run.scratch);
  if (::chdir("/") != 0) throw os_error(errno, "cannot enter `/`");
  prepare(root);
  if (refusal_) return;
  processes_.emplace();
  processes_->settle();
  enter_for_children(*processes_);
  forbid_privileged_files();
  boot();
  if (!refusal_) fill();
}

VmRun::~VmRun() = default;

void VmRun::prepare(const fs::path& root) {
  files_ = std::make_unique<Files>(root);
  root_ = open_file(root, O_PATH | O_DIRECTORY);
  const ImageRoot image{Fd{::fcntl(root_.get(), F_DUPFD_CLOEXEC, 3)}, *files_};
  bundle_.hostname = run_.options.hostname.value_or(host_name());
  // In there is every id: the image's own user, whoever the caller is.
  bundle_.user = job_user(run_, image, /*single_id=*/false);
  give_home(bundle_.user, image);
  const Variables caller = caller_variables();
  const fs::path machine = folder_ / "machine";
  make_folders(machine);
  const std::vector<std::string> variables =
      bring_machine(image, {"/", caller, machine, /*single_id=*/false, true, bundle_.user.home});
  if (run_.options.hostname) {
    image.write("/etc/hosts",
                image.read("/etc/hosts").value_or("") + "127.0.1.1 " + bundle_.hostname + "\n");
  }
  image.write("/etc/resolv.conf", private_resolver("nameserver 127.0.0.1\n" +
                                                       image.read("/etc/resolv.conf").value_or(""),
                                                   /*by_pasta=*/false));
  bundle_.argv = job_argv(run_);
  bundle_.env = job_environment(run_, variables, caller, bundle_.user.home);
  bundle_.workdir = job_workdir(run_);
  bundle_.terminal = run_.terminal;
  bundle_.read_only = run_.options.read_only;
  bundle_.mounts = {{machine, std::string(kMachineTarget), true}};
  std::vector<Mount> own = job_mounts(run_);
  require_settled(run_, own);
  own = with_own_results(run_, std::move(own), folder_ / "results");
  if (run_.throwaway_mounts) {
    own = under_throwaway_layers(run_, std::move(own), identity_ != Identity::root);
  }
  bundle_.mounts.insert(bundle_.mounts.end(), own.begin(), own.end());
  bundle_.mounts = in_order(bundle_.mounts);
  for (const MemoryFolder& one : run_.options.tmpfs) {
    CdiMount memory;
    memory.path = one.target;
    memory.host_path = memory.type = "tmpfs";
    memory.options = one.options;
    bundle_.file_systems.push_back(std::move(memory));
  }
  check_mounts(bundle_, image);
  check_workdir(bundle_, image);
  refusal_ = cannot_run(bundle_, image);
}

/// All of them below one folder, each by its number.
std::string VmRun::share_mounts() const {
  const fs::path shares = folder_ / "shares";
  make_folders(shares);
  std::string text;
  for (std::size_t i = 0; i < bundle_.mounts.size(); ++i) {
    const Mount& mount = bundle_.mounts[i];
    bind_share(mount, shares / std::to_string(i));
    vm::add_item(text, vm::kShare, std::to_string(i), mount.target,
                 is_folder(mount.source) ? "folder" : "file", mount.read_only ? "ro" : "rw");
  }
  return text;
}

std::string VmRun::setup() const {
  const JobOptions& options = run_.options;
  std::string text;
  vm::add_item(text, vm::kHostName, bundle_.hostname);
  vm::add_item(text, vm::kTime, std::to_string(std::time(nullptr)));
  if (options.shm_bytes) vm::add_item(text, vm::kShm, std::to_string(*options.shm_bytes));
  if (options.read_only) vm::add_item(text, vm::kReadOnly, bundle_.user.home);
  if (options.network == "private") vm::add_item(text, vm::kNetwork);
  for (const MemoryFolder& one : options.tmpfs) {
    std::string words;
    for (const std::string& word : one.options) words += (words.empty() ? "" : ",") + word;
    vm::add_item(text, vm::kMemory, one.target, words);
  }
  return text + share_mounts();
}

void VmRun::note_use() {
  const VmSpec& spec = run_.vm.value();
  use_.machine = kMachineType;
  use_.kernel = spec.kernel_version;
  use_.kernel_lock = spec.kernel_lock;
  use_.memory_bytes = spec.memory_bytes;
  use_.cpus = spec.cpus;
  use_.disk_bytes = spec.disk_bytes;
}

QemuMachine VmRun::machine() const {
  const VmSpec& spec = run_.vm.value();
  QemuMachine machine;
  machine.spec = spec;
  machine.initial_disk = folder_ / "initial";
  machine.shares = folder_ / "shares";
  machine.owners_kept = identity_ != Identity::single_id;
  machine.ports = run_.options.ports;
  machine.has_network = run_.options.network == "private";
  return machine;
}

Heard VmRun::boot_with(const AcceleratorChoice& choice, QemuMachine machine,
                       const std::string& told) {
  machine.accelerator = choice.accelerator;
  const Fd scratch = make_scratch_disk(run_.scratch, run_.vm->disk_bytes);
  const bool is_kvm = choice.accelerator == Accelerator::kvm;
  machine_.emplace(machine, folder_ / (is_kvm ? "kvm" : "tcg"), told, scratch.get());
  return machine_->boot(watch_, choice.patience);
}

void VmRun::boot() {
  const VmSpec& spec = run_.vm.value();
  const KvmMemory memory{spec.remembered, spec.qemu};
  const std::optional<SeenKvm> before = memory.read();
  AcceleratorChoice choice = choose_accelerator(kvm_problem(), before, std::time(nullptr));
  note_use();
  const QemuMachine wanted = machine();
  write_file(wanted.initial_disk, read_file(spec.modules) + programs_archive(), /*durable=*/false);
  const std::string told = setup();
  std::optional<SeenKvm> seen;
  while (true) {
    const Heard heard = boot_with(choice, wanted, told);
    const bool is_kvm = choice.accelerator == Accelerator::kvm;
    if (heard == Heard::answer) {
      if (is_kvm) seen = SeenKvm{true, {}};
      break;
    }
    if (heard == Heard::signal || heard == Heard::nobody_waits) {
      refusal_ = not_started();
      return;
    }
    const std::string why =
        heard == Heard::nothing
            ? fmt::format("the guest did not answer within {} s", choice.patience.count())
            : machine_->why();
    machine_.reset();
    if (!is_kvm) throw failure("vm-failed", "the virtual machine did not start").because(why);
    seen = SeenKvm::failed(before, "with KVM " + why, std::time(nullptr));
    choice = emulation(seen->why);
  }
  // Not before one of them works: else it was something else, and KVM may well.
  if (seen && seen != before) memory.write(*seen);
  use_.accelerator = choice.accelerator == Accelerator::kvm ? "kvm" : "tcg";
  use_.why = choice.why;
  if (choice.accelerator == Accelerator::tcg) tell_of_emulation(memory);
}

void VmRun::tell_of_emulation(const KvmMemory& memory) const {
  if (run_.vm->quiet) return;
  std::string line = "emulated, many times slower than this machine: " + use_.why;
  const std::optional<SeenKvm> seen = memory.read();
  // What is remembered is not always why: /dev/kvm may be gone by now.
  if (seen && seen->why == use_.why) {
    constexpr int kMinute = 60;
    line +=
        fmt::format("; KVM is not tried again for {} min, or until `{}` is removed",
                    seen->rest(std::time(nullptr)).count() / kMinute + 1, memory.file().string());
  }
  complain(line);
}

void VmRun::complain(const std::string& why) const {
  const std::string line = "mlenv: " + printable(why) + "\n";
  write_all(run_.fds.err >= 0 ? run_.fds.err : STDERR_FILENO, as_bytes(line));
}

/// The guest was to answer, and has not: why the run ends before its command. Throws unless a
/// signal is the reason.
CannotRun VmRun::not_started() {
  switch (machine_->heard()) {
    case Heard::signal:
      return {kSignalBase + waiting_end_signal(), "the virtual machine had not started yet"};
    case Heard::nobody_waits:
      throw failure("run-failed", "mlenv was killed");
    case Heard::nothing:
      throw failure("vm-ended", "the virtual machine does not answer")
          .because(fmt::format("nothing came of it within {} s", kVmPatience.count()));
    case Heard::answer:
    case Heard::end:
      break;
  }
  throw failure("vm-ended", "the virtual machine ended before the command")
      .because(machine_->end());
}

/// What the run brings along, in the guest as it is here.
void VmRun::fill() {
  machine_->wait_with(watch_, kVmPatience);
  KeeperWriter writer{machine_->keeper(), bundle_.mounts};
  writer.belongs_to(bundle_.user);
  try {
    files_->repeat(writer);
  } catch (const Error& error) {
    if (error.code() != Keeper::kGone) throw;
    refusal_ = not_started();
  }
}

/// Where nothing begins, `begun` is empty, and what is returned is the run's end.
PreparedRun::Attempt VmRun::begin(const KeptProcess& process,
                                  std::optional<Keeper::Started>& begun) {
  Keeper& keeper = machine_->keeper();
  machine_->wait_with(watch_, kVmPatience);
  keeper::Failed problem;
  try {
    if (std::exchange(again_, true)) {
      std::vector<std::string> memory{"/tmp", "/dev/shm", "/dev/mqueue"};
      for (const MemoryFolder& one : run_.options.tmpfs) memory.push_back(one.target);
      if (!keeper.reset(memory)) return {last_end_, false, true};
    }
    begun = keeper.start(process, problem);
  } catch (const Error& error) {
    if (error.code() != Keeper::kGone) throw;
    const CannotRun why = not_started();
    complain(why.why);
    return {{{why.status, false}}, false, true};
  }
  if (begun) {
    machine_->command_started();
    return {{}, true};
  }
  const std::optional<CannotRun> refused = refused_by_kernel(problem, bundle_.argv.at(0));
  if (!refused) {
    throw failure("run-failed", "the command could not be started in the virtual machine")
        .because(errno_text(problem.error));
  }
  complain(refused->why);
  return {{{refused->status, false}}, false};
}

void VmRun::require_written() const {
  if (!machine_->lost_writes()) return;
  throw failure("vm-disk", "what the run wrote to the image did not all get to the disk")
      .because(
          "this machine's disk, where the store is, is full or broken; later reads give "
          "something else")
      .hint("make room, or write large files to the project or to a `--volume`");
}

/// A command outside a machine would have had the error itself.
void VmRun::require_delivered(const Exit& exit) const {
  const int error = machine_->lost_output();
  if (error == 0 || exit.code != 0) return;
  throw failure("answer-lost", "cannot write what the command said")
      .because(errno_text(error))
      .hint("send standard output where there is room");
}

PreparedRun::Attempt VmRun::run(JobWatch& watch, const std::function<void()>& started) {
  Keeper& keeper = machine_->keeper();
  const KeptProcess process = kept_process(bundle_, run_.fds);
  const std::uint64_t kills = machine_->memory_kills();
  std::optional<Keeper::Started> begun;
  Attempt attempt = begin(process, begun);
  if (!begun) return attempt;
  started();
  {
    std::optional<TerminalRelay> relay;
    if (begun->master) relay.emplace(begun->master);
    EngineExec server{keeper, root_, bundle_, process};
    VmJob job{keeper};
    watch.while_running(job, [&](const ExecRequest& request, std::vector<Fd> files, Fd back) {
      server.start(request, std::move(files), std::move(back));
    });
    machine_->wait_with({},
                        kVmPatience);  // it is there: a signal that is there, too, changes nothing
    const std::optional<Keeper::End> end = keeper.ended();
    if (!end && !watch.must_end()) {
      throw failure("vm-ended", "the virtual machine ended before the command")
          .because(machine_->end());
    }
    attempt.end.exit = end ? end->exit : Exit{kSignalBase + SIGKILL, true};
    if (end) usage_ = usage_of(end->use);
    attempt.end.out_of_memory = machine_->memory_kills() > kills;
    require_written();
    // What the command left running goes with it, and lets go of terminal and streams.
    machine_->wait_with(watch_, kVmPatience);
    attempt.last = !end || !keeper.reset({});
  }
  last_end_ = attempt.end;
  require_delivered(attempt.end.exit);
  return attempt;
}

}  // namespace mlenv
