// What NVIDIA's container toolkit says of a host: its own generator of CDI specifications, over the
// NVML that its makers test it with.
//
//	cdi_oracle HOOK <GPUS
//
// HOOK is nvidia-cdi-hook; GPUS has a line for each GPU, in NVML's order: minor, UUID, address on the
// bus. The specification goes to standard output.
package main

import (
	"fmt"
	"log"
	"os"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/gpus"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/NVIDIA/nvidia-container-toolkit/pkg/nvcdi"
)

func require(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func gpu(index, minor int, uuid, address string) *server.Device {
	device := server.NewDeviceFromConfig(gpus.A100_SXM4_40GB, index)
	device.Minor = minor
	device.UUID = uuid
	device.PciBusID = address
	device.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 0, nvml.SUCCESS }
	device.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		info := nvml.PciInfo{PciDeviceId: device.Config.PciDeviceId}
		for i := range address {
			info.BusId[i] = int8(address[i])
		}
		return info, nvml.SUCCESS
	}
	return device
}

func host() *server.Server {
	made := server.NewServerWithGPUs("", "", 0)
	for {
		var minor int
		var uuid, address string
		if _, err := fmt.Scan(&minor, &uuid, &address); err != nil {
			break
		}
		made.Devices = append(made.Devices, gpu(len(made.Devices), minor, uuid, address))
	}
	if len(made.Devices) == 0 {
		log.Fatal("no GPUs")
	}
	return made
}

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: cdi_oracle HOOK <GPUS")
	}
	byIndex, err := nvcdi.NewDeviceNamer(nvcdi.DeviceNameStrategyIndex)
	require(err)
	byUUID, err := nvcdi.NewDeviceNamer(nvcdi.DeviceNameStrategyUUID)
	require(err)
	generator, err := nvcdi.New(nvcdi.WithNvmlLib(host()), nvcdi.WithMode(nvcdi.ModeNvml),
		nvcdi.WithDeviceNamers(byIndex, byUUID), nvcdi.WithNVIDIACDIHookPath(os.Args[1]))
	require(err)
	spec, err := generator.GetSpec()
	require(err)
	_, err = spec.WriteTo(os.Stdout)
	require(err)
}
