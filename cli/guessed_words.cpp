#include "cli/guessed_words.hpp"

#include <array>
#include <string>

namespace mlenv::cli {
namespace {

struct GuessedWord {
  std::string_view words;  ///< with a blank on both sides
  std::string_view leads;
};

constexpr std::array kCommandWords{
    GuessedWord{
        " upgrade update ",
        "`mlenv lock --upgrade RECIPE` takes newer versions, `--upgrade NAME` of one package"},
    GuessedWord{" kill down terminate cancel scancel ", "`mlenv stop RUN` ends a run"},
    GuessedWord{" top stats htop ", "`mlenv watch RUN` shows what a run uses"},
    GuessedWord{
        " attach tail follow ",
        "`mlenv logs -f RUN` follows what a run writes, `mlenv shell RUN` opens a shell in it"},
    GuessedWord{" df du disk usage size ",
                "`mlenv images` shows what images take, `mlenv gc` frees what nobody needs"},
    GuessedWord{" prune clean cleanup purge ",
                "`mlenv gc` frees what nobody needs, `mlenv runs prune` takes old records away"},
    GuessedWord{" history ",
                "`mlenv runs` lists past runs, `mlenv images --history NAME` what a name meant"},
    GuessedWord{" login logout auth ",
                "mlenv uses what `docker login HOST` wrote (docs/registry.md has the file's form)"},
    GuessedWord{" start up launch train submit sbatch srun ",
                "`mlenv run IMAGE -- CMD` starts a command, with `-d` in the background, with "
                "`--nodes N` on several nodes"},
    GuessedWord{" sweep grid matrix ",
                "`mlenv run --matrix lr=0.1,0.01 IMAGE -- CMD` runs a variation for each value"},
    GuessedWord{" restart ",
                "`mlenv run --restart on-failure:3` starts a command again when it fails"},
    GuessedWord{" ls list image ", "did you mean `mlenv images`?"},
    GuessedWord{" rmi delete del ", "did you mean `mlenv rm`?"},
    GuessedWord{" export-image dump ", "did you mean `mlenv save`?"},
    GuessedWord{" install pip ", "did you mean `mlenv add`?"},
    GuessedWord{" uninstall ", "did you mean `mlenv remove`?"},
    GuessedWord{" verify fsck ", "did you mean `mlenv store verify`?"},
    GuessedWord{" sync ", "did you mean `mlenv store sync`?"},
    GuessedWord{" new create convert generate-recipe ",
                "`mlenv init` writes a recipe, `mlenv init --from FILE` from another tool's file"},
    GuessedWord{" import ",
                "`mlenv load` takes an image from files, `mlenv init --from FILE` a recipe from "
                "another tool's file"},
    GuessedWord{" activate enter bash sh ssh connect ",
                "`mlenv shell RECIPE` opens a shell in an environment, `mlenv shell RUN` in a run"},
    GuessedWord{" freeze compile ", "`mlenv lock RECIPE` pins every package"},
    GuessedWord{" status jobs squeue ",
                "`mlenv ps` lists the runs that go on, `mlenv runs` all of them"},
    GuessedWord{" results metrics experiments ",
                "`mlenv runs` lists runs, `mlenv runs show RUN` tells all of one"},
    GuessedWord{" repeat replay rerun ", "did you mean `mlenv reproduce`?"},
    GuessedWord{" undo revert ", "did you mean `mlenv rollback`?"},
    GuessedWord{" rename ", "did you mean `mlenv tag`?"},
    GuessedWord{" bench benchmark ", "did you mean `mlenv compare`?"},
    GuessedWord{" doctor lint validate ", "did you mean `mlenv check`?"},
    GuessedWord{" info gpus gpu nvidia-smi ", "did you mean `mlenv facts`?"},
    GuessedWord{" publish upload ", "did you mean `mlenv push`?"},
    GuessedWord{" download fetch ", "did you mean `mlenv pull`?"},
    GuessedWord{" notebook jupyter lab ",
                "`mlenv run --jupyter RECIPE` serves the environment's Jupyter"},
    GuessedWord{
        " commit checkpoint ",
        "`mlenv run --keep` keeps what a run writes to the image, for `--from` of later runs"},
    GuessedWord{" version ", "did you mean `mlenv --version`?"},
};

constexpr std::array kOptionWords{
    GuessedWord{" -it -ti -i -dit -itd --interactive ",
                "`-t` gives it a terminal; its input is the caller's anyway"},
    GuessedWord{" --privileged --cap-add --security-opt ",
                "containers get no more rights: `--device` and `--rdma` give devices, `--runtime "
                "docker` another engine"},
    GuessedWord{" --ipc ", "/dev/shm has half of the memory; `--shm-size` says how much"},
    GuessedWord{" --entrypoint ",
                "what stands after `--` is the command: `mlenv run IMAGE -- CMD`"},
    GuessedWord{" --daemon --background ", "did you mean `--detach`?"},
    GuessedWord{" --gpu --num-gpus ", "did you mean `--gpus`?"},
    GuessedWord{" --net ", "did you mean `--network`?"},
    GuessedWord{" --port --ports ", "did you mean `--publish`?"},
    GuessedWord{" --bind -B ", "did you mean `--volume`?"},
    GuessedWord{" --np -np --ntasks --nproc-per-node --nproc_per_node ",
                "`--nodes N` and `--ranks-per-node N` say how many"},
    GuessedWord{" --nnodes ", "did you mean `--nodes`?"},
    GuessedWord{" --grid --sweep ", "did you mean `--matrix`?"},
};

template <std::size_t N>
std::string_view leads_of(const std::array<GuessedWord, N>& table, std::string_view word) {
  if (word.empty() || word.find(' ') != std::string_view::npos) return {};
  const std::string padded = " " + std::string(word) + " ";
  for (const GuessedWord& one : table) {
    if (one.words.find(padded) != std::string_view::npos) return one.leads;
  }
  return {};
}

}  // namespace

std::string_view meant_by_command(std::string_view word) { return leads_of(kCommandWords, word); }

std::string_view meant_by_option(std::string_view word) { return leads_of(kOptionWords, word); }

}  // namespace mlenv::cli
