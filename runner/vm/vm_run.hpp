#pragma once
// A run in a virtual machine of its own. The stage finds out what the run is as it does for a
// container, on the image's unpacked layers; QEMU starts the image's disk with the distribution's
// kernel, and the keeper in there takes the place of the OCI runtime.
#include "runner/engine/keeper_client.hpp"
#include "runner/local/prepared_run.hpp"
#include "runner/local/run.hpp"
#include "runner/vm/accelerator.hpp"
#include "runner/vm/machine.hpp"

namespace mlenv {

class VmRun final : public PreparedRun {
 public:
  /// Throws as `run_local`, and `vm-failed`.
  VmRun(const LocalRun& run, int socket, int signals);
  VmRun(const VmRun&) = delete;
  VmRun& operator=(const VmRun&) = delete;
  ~VmRun() override;
  const std::optional<CannotRun>& refusal() const override { return refusal_; }
  Attempt run(JobWatch& watch, const std::function<void()>& started) override;
  std::optional<JobUsage> usage() const override { return usage_; }
  std::optional<VmUse> vm() const override { return use_; }

 private:
  class Files;
  void prepare(const fs::path& root);
  std::string share_mounts() const;
  std::string setup() const;
  QemuMachine machine() const;
  void note_use();
  void boot();
  Heard boot_with(const AcceleratorChoice& choice, QemuMachine machine, const std::string& told);
  void tell_of_emulation(const KvmMemory& memory) const;
  void fill();
  CannotRun not_started();
  Attempt begin(const KeptProcess& process, std::optional<Keeper::Started>& begun);
  void require_written() const;
  void require_delivered(const Exit& exit) const;
  void complain(const std::string& why) const;

  const LocalRun& run_;
  GuestWatch watch_;  ///< while the guest, or a command in it, starts
  Identity identity_ = Identity::single_id;
  fs::path folder_;  ///< private, in memory
  Fd root_;          ///< of the image, as the stage sees it
  std::unique_ptr<Files> files_;
  Bundle bundle_;
  std::optional<PidNamespace> processes_;
  std::optional<VirtualMachine> machine_;
  std::optional<CannotRun> refusal_;
  std::optional<JobUsage> usage_;
  VmUse use_;
  bool again_ = false;
  JobEnd last_end_;
};

}  // namespace mlenv
