import BusKit
import PodcastModel

/// The state of libmpv’s sound output.
struct MPVOutputs {
    /// The requested device; empty means the system’s default.
    var chosen = ""
    /// The device that libmpv is set to use: the chosen one, or the default if that is missing.
    var selected = ""
    /// The selected device has disappeared, and the sound server has moved the sound to another one.
    var hasLeft = false
    /// The driver of the open output; nil if no output is open.
    var driver: String?
    /// Whether the output had no real driver when it was last opened.
    var wasSilent = false
    /// The last list of devices, dummies included; nil if there is none yet.
    var listed: [OutputDevice]?
    var watch: MPVDeviceWatch?
    /// The deadline for a list of devices; nil if no list is awaited.
    var listBy: MonotonicTime?
    /// The output was opened before the awaited list, after which the device is chosen again and reported.
    var isUnchecked = false

    /// The sound servers’ name for the sink that they create when they have none.
    static let dummy = "/auto_null"
    /// The time limit for a list of devices, which usually takes some hundredths of a second.
    static let listLimit = Duration.seconds(2)

    var isSilent: Bool? {
        guard let driver else { return nil }
        if driver == "null" { return true }
        let own = (listed ?? []).filter { $0.name.hasPrefix(driver + "/") }
        return !own.isEmpty && own.allSatisfy { $0.name.hasSuffix(Self.dummy) }
    }

    /// Whether a device may be available: it is listed, or its driver lists no devices at all.
    func has(_ device: String) -> Bool {
        guard let slash = device.firstIndex(of: "/") else { return true }
        let own = (listed ?? []).filter { $0.name.hasPrefix(device[...slash]) }
        return own.isEmpty || own.contains { $0.name == device }
    }
}

extension MPVPlayer {
    var isListing: Bool { outputs.listBy != nil }

    // MARK: Requests

    func choose(_ device: String) {
        outputs.chosen = device
        outputs.isUnchecked = true
        use(device)
        listDevices()
    }

    /// Selects the output for a file; reopens a silent output, or an output whose device has disappeared.
    func prepareOutput(_ device: String) {
        outputs.chosen = device
        if outputs.listed == nil { outputs.isUnchecked = true }
        let isUnusable = outputs.hasLeft || outputs.driver == "null"
        if !use(device), isUnusable, !usesNullOutput { reopenOutput { core.command(["ao-reload"]) } }
    }

    /// Reopens the output, except in the last moment of a file, which would be lost.
    func reloadOutput() {
        if let now = current, now.atEnd, !now.wantsPause { return }
        // The list is stale if the sound server has been unavailable.
        if !outputs.chosen.isEmpty, outputs.driver == "null" {
            outputs.isUnchecked = true
            listDevices()
        }
        if !use(outputs.chosen) { reopenOutput { core.command(["ao-reload"]) } }
        if let driver = outputs.driver, driver != "null" { reportOutputs() }
    }

    /// Lists the devices again and reports them.
    func listDevices() {
        guard !usesNullOutput else { return reportOutputs(isListed: true) }
        outputs.watch?.end()
        outputs.watch = MPVDeviceWatch(report: listed)
        outputs.listBy = SystemClocks.monotonic().advanced(by: MPVOutputs.listLimit)
    }

    /// Makes libmpv use a device, or the system’s default if that is missing.
    ///
    /// - Returns: whether the device has changed, so that libmpv reopens its output by itself.
    @discardableResult
    private func use(_ device: String) -> Bool {
        let target = usesNullOutput || outputs.has(device) ? device : ""
        outputs.hasLeft = false
        guard target != outputs.selected else { return false }
        outputs.selected = target
        reopenOutput { core.set("audio-device", target.isEmpty ? "auto" : target) }
        return true
    }

    /// Reopens the output and seeks to the same position, because the audio that the output and the filters have
    /// buffered, up to 1.3 s, is lost.
    private func reopenOutput(_ reopen: () -> Void) {
        let position = current?.isSeekPending == true ? current?.seekRequested?.position : presentPosition
        reopen()
        guard let now = current, now.loaded, !now.atEnd, let position else { return }
        seek(to: position, serial: now.seekRequested?.serial ?? now.load.serial)
    }

    // MARK: Events of libmpv

    func driverChanged(_ driver: String?) {
        let before = outputs.driver
        outputs.driver = driver
        guard let driver else { return }
        if driver == "null" { outputs.wasSilent = true }
        // The previous listener has ended with the sound server.
        if !usesNullOutput, outputs.watch == nil || outputs.wasSilent && driver != "null" {
            outputs.wasSilent = driver == "null"
            outputs.isUnchecked = true
            listDevices()
        } else if driver != before || !usesNullOutput {
            reportOutputs()
        }
    }

    func devicesListed(_ devices: [OutputDevice]) {
        outputs.listed = devices
        outputs.listBy = nil
        guard outputs.isUnchecked else {
            if !outputs.has(outputs.selected) { outputs.hasLeft = true }
            return reportOutputs(isListed: true)
        }
        outputs.isUnchecked = false
        let isMoving = use(outputs.chosen)
        reportOutputs(isListed: true, isMoving: isMoving && outputs.driver == "null")
    }

    /// Stops waiting for a list when its deadline has passed.
    func endListing() {
        guard let listBy = outputs.listBy, SystemClocks.monotonic() >= listBy else { return }
        outputs.listBy = nil
        outputs.isUnchecked = false
        reportOutputs(isListed: true)
    }

    private var shownDevices: [OutputDevice] {
        guard !usesNullOutput else { return [OutputDevice(name: "null", description: "No sound")] }
        return (outputs.listed ?? []).filter { !$0.name.hasSuffix(MPVOutputs.dummy) }
    }

    func reportOutputs(isListed: Bool = false, isMoving: Bool = false) {
        // The list shows whether a dummy, or a device other than the chosen one, is in use.
        guard !outputs.isUnchecked || usesNullOutput else { return }
        let silent = usesNullOutput ? outputs.driver.map { _ in false } : outputs.isSilent
        observer(
            .outputs(
                EngineOutputs(
                    devices: isListed || usesNullOutput ? shownDevices : nil,
                    inUse: outputs.hasLeft ? "" : outputs.selected, silent: isMoving ? nil : silent)))
    }
}
