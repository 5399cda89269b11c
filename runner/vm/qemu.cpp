#include "runner/vm/qemu.hpp"

#include <fmt/core.h>

#include "runner/vm/frames.hpp"

namespace mlenv {
namespace {

/// A value among others that commas separate.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == ',') result += c;
  }
  return result;
}

class QemuWords {
 public:
  explicit QemuWords(const std::string& program) : words_{program} {}
  void add(const std::string& name, const std::string& value) {
    words_.push_back(name);
    words_.push_back(value);
  }
  void flag(const std::string& name) { words_.push_back(name); }
  std::vector<std::string> finish() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

std::string network(const std::vector<PublishedPort>& ports) {
  std::string text = "user,id=net";
  for (const PublishedPort& port : ports) {
    text += fmt::format(",hostfwd={}:{}:{}-:{}", port.protocol, port.address, port.host,
                        port.container);
  }
  return text;
}

void add_machine_devices(const QemuMachine& machine, QemuWords& words) {
  words.add("-blockdev", fmt::format("driver=raw,node-name=disk,read-only=on,file.driver=file,"
                                     "file.read-only=on,file.locking=off,file.filename={}",
                                     escaped(machine.spec.disk)));
  words.add("-device", "virtio-blk-pci,drive=disk");
  // What the guest frees goes back to the file. A full host is told to the guest: QEMU would stop
  // it without a word.
  words.add("-add-fd", fmt::format("fd={},set=1", machine.scratch));
  words.add("-blockdev",
            "driver=raw,node-name=scratch,discard=unmap,file.driver=file,file.discard=unmap,"
            "file.locking=off,file.filename=/dev/fdset/1");
  words.add("-device", "virtio-blk-pci,drive=scratch,werror=report,rerror=report");
  words.add("-device", "virtio-serial-pci");
  words.add("-chardev", fmt::format("socket,id=port,fd={}", machine.port));
  words.add("-device", fmt::format("virtserialport,chardev=port,name={}", vm::kPortName));
  words.add("-fsdev", fmt::format("local,id=shares,multidevs=remap,security_model={},path={}",
                                  machine.owners_kept ? "passthrough" : "none",
                                  escaped(machine.shares.string())));
  words.add("-device", fmt::format("virtio-9p-pci,fsdev=shares,mount_tag={}", vm::kShareTag));
  if (!machine.has_network) return;
  words.add("-netdev", network(machine.ports));
  // Nothing is started over the network.
  words.add("-device", "virtio-net-pci,netdev=net,romfile=");
}

}  // namespace

std::vector<std::string> qemu_words(const QemuMachine& machine) {
  constexpr unsigned kMebi = 20;
  const bool is_kvm = machine.accelerator == Accelerator::kvm;
  QemuWords words{machine.spec.qemu};
  words.add("-machine", fmt::format("{},vmport=off,graphics=off", kMachineType));
  words.add("-accel", is_kvm ? "kvm" : "tcg");
  words.add("-cpu", is_kvm ? "host" : "max");
  words.add("-smp", std::to_string(machine.spec.cpus));
  words.add("-m", fmt::format("{}M", machine.spec.memory_bytes >> kMebi));
  words.add("-display", "none");
  for (const char* one : {"-nodefaults", "-no-user-config", "-no-reboot"}) words.flag(one);
  words.add("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny");
  words.add("-kernel", machine.spec.kernel);
  words.add("-initrd", machine.initial_disk.string());
  // An emulated machine that has to share its host's processors may seem to have no timer.
  std::string append = "console=ttyS0 quiet panic=-1 reboot=t no_timer_check rdinit=/init";
  // An emulated one measures how fast its counter goes while others keep it from going at all, and
  // would then have a clock that runs several times too fast.
  if (!is_kvm) append += " tsc=unstable";
  words.add("-append", append);
  words.add("-chardev", fmt::format("file,id=console,path={}", escaped(machine.console.string())));
  words.add("-serial", "chardev:console");
  add_machine_devices(machine, words);
  return words.finish();
}

}  // namespace mlenv
