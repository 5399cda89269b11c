#include "runner/compare/published.hpp"

#include <array>

namespace mlenv::compare {
namespace {

constexpr std::array kPublished = {
    Published{"containers against KVM, several workloads",
              "containers at least as fast as KVM in nearly every test",
              "W. Felter, A. Ferreira, R. Rajamony, J. Rubio: An Updated Performance Comparison of "
              "Virtual Machines and Linux Containers. IBM Research Report RC25482, 2014",
              "https://doi.org/10.1109/ISPASS.2015.7095802"},
    Published{"Firecracker, from start to the application's code", "less than 125 ms",
              "A. Agache and others: Firecracker: Lightweight Virtualization for Serverless "
              "Applications. NSDI 2020",
              "https://www.usenix.org/conference/nsdi20/presentation/agache"},
    Published{"Firecracker, memory that a microVM takes besides its own", "less than 5 MB",
              "A. Agache and others, NSDI 2020",
              "https://www.usenix.org/conference/nsdi20/presentation/agache"},
    Published{"LightVM (unikernels on Xen), boot", "2.3 ms, where fork and exec take 1 ms",
              "F. Manco and others: My VM is Lighter (and Safer) than your Container. SOSP 2017",
              "https://doi.org/10.1145/3132747.3132763"},
    Published{"a hundred containers of /bin/true, one after another", "crun 1.69 s, runc 3.34 s",
              "crun's README", "https://github.com/containers/crun"},
};

}  // namespace

std::span<const Published> published() { return kPublished; }

}  // namespace mlenv::compare
