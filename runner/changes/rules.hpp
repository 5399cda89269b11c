#pragma once
// The rules' functions, a file for each subject: each looks at what is compared and says what it
// finds. What they say beside it stands in rules.cpp.
#include "runner/changes/compared.hpp"

namespace mlenv::changes {

// rules_matrix.cpp: variations of a matrix
void parameters(Compared& here);
/// Two of one matrix: their commands differ by their values alone.
bool are_of_one_matrix(const Compared& here);
/// A variable that both have as a parameter, or that tells a variation who it is.
bool tells_variation(const Compared& here, std::string_view variable);
/// Where both have their own folder.
bool is_own_folder(const Compared& here, std::string_view target);
// rules_run.cpp
void code(Compared& here);
void command(Compared& here);
void mounts(Compared& here);
void run_settings(Compared& here);
void outcome(Compared& here);
// rules_options.cpp
void run_options(Compared& here);
// rules_variables.cpp: of the run over those of the image
void variables(Compared& here);
/// Of one variable.
void variable(Compared& here, const ValueChange& change, std::vector<ValueChange>& others);
void other_variables(Compared& here, const std::vector<ValueChange>& others);
// rules_packages.cpp
void image(Compared& here);
void packages(Compared& here);
// rules_gpu.cpp
void driver(Compared& here);
void gpus(Compared& here);
void gpu_host(Compared& here);
// rules_cpu.cpp
void processors(Compared& here);
void memory(Compared& here);
// rules_host.cpp
void kernel(Compared& here);
void limits(Compared& here);
void disks(Compared& here);
void isolation(Compared& here);
void network(Compared& here);
void clock(Compared& here);
// details.cpp: all that no rule looked at, as incidental
void details(Compared& here);

}  // namespace mlenv::changes
