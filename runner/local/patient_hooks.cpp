#include "runner/local/patient_hooks.hpp"

namespace mlenv {

CdiHook patient_hook(const CdiHook& hook) {
  if (hook.when == "startContainer") return hook;
  // -p: a hook's own PATH may be anything.
  constexpr const char* kScript =
      "state=$(command -p cat)\n"
      "exec \"$0\" \"$@\" <<STATE\n"
      "$state\n"
      "STATE\n";
  CdiHook patient = hook;
  patient.path = "/bin/sh";
  patient.argv = {"sh", "-c", kScript, hook.path};
  if (!hook.argv.empty()) {
    patient.argv.insert(patient.argv.end(), hook.argv.begin() + 1, hook.argv.end());
  }
  return patient;
}

}  // namespace mlenv
