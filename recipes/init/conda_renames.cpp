#include "recipes/init/conda_renames.hpp"

#include <unordered_map>

#include "recipes/text.hpp"

namespace mlenv {
namespace {

/// Where the table has another name than the one that people want, or none: packages that only name
/// others, channels other than conda-forge, and well-known projects that are not among PyPI's most
/// downloaded, each looked up there. A line: conda's name, PyPI's.
constexpr std::string_view kOnPypi = R"(
pytorch torch
pytorch-gpu torch
pytorch-cpu torch
pytorch-nightly torch
torchvision-cpu torchvision
torchaudio-cpu torchaudio
torchtriton triton
ignite pytorch-ignite
pinocchio pin
pyg torch-geometric
pytorch-scatter torch-scatter
pytorch-sparse torch-sparse
pytorch-cluster torch-cluster
pytorch-spline-conv torch-spline-conv
tensorflow-gpu tensorflow
tensorflow-cpu tensorflow-cpu
tensorflow-base tensorflow
tensorflow-mkl tensorflow
tensorflow-eigen tensorflow
keras-gpu keras
keras-base keras
opencv opencv-python-headless
opencv3 opencv-python-headless
py-opencv opencv-python-headless
matplotlib-base matplotlib
seaborn-base seaborn
dask-core dask
scikit-learn-intelex scikit-learn-intelex
msgpack-python msgpack
pytables tables
python-graphviz graphviz
python-igraph igraph
faiss faiss-cpu
faiss-cpu faiss-cpu
faiss-gpu faiss-gpu
py-xgboost xgboost
py-xgboost-cpu xgboost
py-xgboost-gpu xgboost
ray-core ray
ray-default ray[default]
ray-tune ray[tune]
ray-rllib ray[rllib]
ray-serve ray[serve]
ray-data ray[data]
ray-train ray[train]
ray-all ray[all]
uvicorn-standard uvicorn[standard]
vtk vtk
mujoco mujoco
pytensor pytensor
pyav av
pyqt pyqt5
antlr4-python3-runtime antlr4-python3-runtime
pyrealsense2 pyrealsense2
gudhi gudhi
pysam pysam
pybedtools pybedtools
multiqc multiqc
snakemake snakemake
parmed parmed
pdbfixer pdbfixer
mediapipe mediapipe
highdicom highdicom
pyradiomics pyradiomics
itk-elastix itk-elastix
pysptk pysptk
kenlm kenlm
phonemizer phonemizer
onnxruntime-gpu onnxruntime-gpu
opencv-contrib-python opencv-contrib-python
dgllife dgllife
bilby bilby
flair flair
stardist stardist
vaex vaex
espnet espnet
scann scann
annoy annoy
fbprophet fbprophet
mujoco-py mujoco-py
atari-py atari-py
stanfordnlp stanfordnlp
petsc4py petsc4py
tensorrt tensorrt
pillow-simd pillow-simd
titiler titiler
wrf-python wrf-python
ortools ortools
h2o h2o
cyvcf2 cyvcf2
htseq htseq
macs2 macs2
macs3 macs3
deeptools deeptools
pybigwig pybigwig
pyfaidx pyfaidx
cutadapt cutadapt
umi-tools umi-tools
scvelo scvelo
bbknn bbknn
phate phate
loompy loompy
goatools goatools
dendropy dendropy
ete3 ete3
pyopenms pyopenms
vina vina
snakemake-minimal snakemake
python-lz4 lz4
python-pdal pdal
macs macs2
mygene mygene)";

/// Programs, and libraries that programs look for by name, which are Debian's here. A line: conda's
/// name, Debian's; `*`: a library that others bring along.
constexpr std::string_view kInDebian = R"(
gcc gcc
gxx g++
gcc_linux-64 gcc
gxx_linux-64 g++
gfortran gfortran
gfortran_linux-64 gfortran
c-compiler gcc
cxx-compiler g++
fortran-compiler gfortran
compilers build-essential gfortran
clang clang
make make
cmake cmake
ninja ninja-build
autoconf autoconf
automake automake
libtool libtool
m4 m4
bison bison
flex flex
swig swig
nasm nasm
yasm yasm
patchelf patchelf
pkg-config pkg-config
ccache ccache
gdb gdb
valgrind valgrind
doxygen doxygen
rust rustc cargo
go golang-go
ruby ruby
perl perl *
git git
git-lfs git-lfs
subversion subversion
curl curl *
wget wget
aria2 aria2
rsync rsync
openssh openssh-client
openssl openssl *
sqlite sqlite3 *
tk python3-tk *
jq jq
parallel parallel
ripgrep ripgrep
tree tree
less less
vim vim
nano nano
emacs emacs-nox
tmux tmux
screen screen
htop htop
zip zip
unzip unzip
unrar unrar-free
p7zip p7zip-full
pigz pigz
ffmpeg ffmpeg
sox sox
libsndfile libsndfile1 *
portaudio portaudio19-dev *
imagemagick imagemagick
graphviz graphviz
ghostscript ghostscript
poppler poppler-utils
tesseract tesseract-ocr
pandoc pandoc *
texlive-core texlive-latex-base
mesalib libgl1-mesa-dri libosmesa6
libglu libglu1-mesa *
glfw libglfw3
glew libglew-dev
freeglut freeglut3-dev
eigen libeigen3-dev *
boost libboost-all-dev *
boost-cpp libboost-all-dev *
gsl libgsl-dev *
fftw libfftw3-dev *
geos libgeos-dev *
libaio libaio-dev *
gperftools libgoogle-perftools4
jemalloc libjemalloc2 *
numactl numactl
openmpi openmpi-bin libopenmpi-dev
mpich mpich libmpich-dev
openjdk default-jdk-headless
java-jdk default-jdk-headless
maven maven
nodejs nodejs
redis-server redis-server
samtools samtools
hmmer hmmer
hhsuite hhsuite
kalign2 kalign
kalign3 kalign
bedtools bedtools
bcftools bcftools
htslib tabix
tabix tabix
bwa bwa
bowtie bowtie
bowtie2 bowtie2
minimap2 minimap2
blast ncbi-blast+
fastqc fastqc
mafft mafft
muscle muscle
clustalo clustalo
clustalw clustalw
fasttree fasttree
iqtree iqtree
raxml raxml
mmseqs2 mmseqs2
diamond diamond-aligner
hisat2 hisat2
star rna-star
salmon salmon
kallisto kallisto
stringtie stringtie
subread subread
seqtk seqtk
fastp fastp
trimmomatic trimmomatic
picard picard-tools
vcftools vcftools
plink plink1.9
plink2 plink2
prodigal prodigal
spades spades
megahit megahit
kraken2 kraken2
barrnap barrnap
cd-hit cd-hit
emboss emboss
infernal infernal
t-coffee t-coffee
mcl mcl
kmer-jellyfish jellyfish
seqkit seqkit
bamtools bamtools
sambamba sambamba
freebayes freebayes
mrbayes mrbayes
phyml phyml
augustus augustus
exonerate exonerate
sra-tools sra-toolkit
entrez-direct ncbi-entrez-direct
dssp dssp
tmalign tm-align
gromacs gromacs
xtb xtb
psi4 psi4
openbabel openbabel python3-openbabel
pymol pymol
pymol-open-source pymol
pymol-bundle pymol
apbs apbs
colmap colmap
meshlab meshlab
blender blender
assimp libassimp-dev assimp-utils *
cgal libcgal-dev *
cgal-cpp libcgal-dev *
pcl libpcl-dev *
ceres-solver libceres-dev *
openexr libopenexr-dev *
libgdal libgdal-dev *
gdal-bin gdal-bin
proj proj-bin libproj-dev *
libspatialindex libspatialindex-dev *
eccodes libeccodes-dev libeccodes-tools *
cdo cdo
nco nco
ncview ncview
grass grass
qgis qgis
osm2pgsql osm2pgsql
exiftool libimage-exiftool-perl
mediainfo mediainfo
libvips libvips-tools libvips42 *
openslide openslide-tools libopenslide0
dcmtk dcmtk
dcm2niix dcm2niix
elastix elastix
qpdf qpdf
mupdf mupdf-tools
potrace potrace
inkscape inkscape
wkhtmltopdf wkhtmltopdf
gnuplot gnuplot
octave octave
glpk glpk-utils
coincbc coinor-cbc
coin-or-cbc coinor-cbc
ipopt coinor-libipopt-dev *
espeak espeak
espeak-ng espeak-ng
festival festival
flac flac
lame lame
mpg123 mpg123
fluidsynth fluidsynth
timidity timidity
x264 x264 *
firefox firefox-esr
chromium chromium
redis redis-server
gstreamer gstreamer1.0-tools *
gst-plugins-good gstreamer1.0-plugins-good *
zstd zstd *)";

class CondaRenames {
 public:
  CondaRenames() {
    for (const std::string_view line : split(kOnPypi, '\n')) add(CondaKind::python, line);
    for (const std::string_view line : split(kInDebian, '\n')) add(CondaKind::system, line);
  }

  std::optional<CondaName> find(std::string_view name) const {
    const auto found = all_.find(std::string(name));
    if (found == all_.end()) return std::nullopt;
    return found->second;
  }

 private:
  void add(CondaKind kind, std::string_view line) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) return;
    constexpr std::string_view kAlong = " *";
    std::string_view name = line.substr(blank + 1);
    const bool along = name.ends_with(kAlong);
    if (along) name.remove_suffix(kAlong.size());
    all_.emplace(line.substr(0, blank), CondaName{kind, std::string(name), along});
  }

  std::unordered_map<std::string, CondaName> all_;
};

}  // namespace

std::optional<CondaName> conda_rename(std::string_view name) {
  static const CondaRenames all;
  return all.find(name);
}

}  // namespace mlenv
