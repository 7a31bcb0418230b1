import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// Faults of the disk, the device and the files.
extension QueueSimulation {
    /// Causes or ends a fault; in one of three cases a service is killed soon after.
    func injectFault() {
        switch random.below(8) {
        case 0: fullDiskSteps = 5 + random.below(60)
        case 1, 2: changeDevice()
        case 3, 4: if let source = sources.changeDownload(&random) { setFile(source) }
        case 5, 6: breakFile()
        default: if let source = sources.change(&random) { setFile(source) }
        }
        if stepsUntilKill == 0, random.below(3) == 0 { stepsUntilKill = 1 + random.below(25) }
    }

    private func setFile(_ source: AudioSource) {
        engine.setFile(source, sources.audio(source, &random))
    }

    private func changeDevice() {
        if device.works {
            checks.log("the sound device is removed")
            device.disconnect(engine, listFirst: random.below(2) == 0)
        } else {
            checks.log("the sound device is added")
            device.connect(engine, works: random.below(4) > 0)
        }
    }

    /// Makes the rest of the playing downloaded file unreadable.
    private func breakFile() {
        guard case .file(let path)? = engine.source, path.hasPrefix("/downloads") else { return }
        checks.log("\(path) becomes unreadable")
        engine.breakOff(Failure(.decoderFailed, "\(path) cannot be read any further."))
    }

    /// Checks that a failed file is replaced by the stream at the same position and that this is reported.
    func checkFallback(
        _ event: PlaybackMachine.Event, from before: WirePlaybackState, to after: WirePlaybackState
    ) {
        guard before.local, before.loadID == event.brokenLoad, ![.failed, .finished].contains(before.status),
            after.status != .finished, before.status != .paused || !after.local
        else { return }
        checks.fallbacks += 1
        let isReported = early.alerts.values.contains { $0.code == "playsStream" && $0.episode == after.episode.id }
        let continues =
            after.intendsToPlay == before.intendsToPlay && after.status != .failed && after.loadID == before.loadID
        let position = listening.position(before, at: now.monotonic)
        guard !after.local, continues, isReported, abs(listening.position(after, at: now.monotonic) - position) < 0.01
        else {
            return checks.recordViolation(
                "its file failed at \(position), and it is \(after.status) at \(after.anchor.position), reported: \(isReported)"
            )
        }
    }

    // MARK: Positions

    /// The stored positions of the episodes.
    private var storedPositions: [String: Double] {
        var positions = states.mapValues(\.position)
        if let record = playerRecords["session/current"],
            let session = try? WireSessionRecord(wireBytes: record.value), session.status != .finished,
            session.isKnown || session.isSeekTarget
        {
            positions[session.episode.id] = session.position
        }
        return positions
    }

    /// Whether the player has saved everything except the last seconds.
    private var isSaved: Bool {
        playerCommits.isEmpty && !playerInbox.contains(where: \.isCommitted) && !isOverdue
            && playerTimers[.retry] == nil
    }

    var isOverdue: Bool { playerTimers[.save].map { $0 < now.monotonic } ?? false }

    func checkPositions() { recordViolation(listening.checkStored(storedPositions, isSettled: isSaved)) }

    /// Checks that a killed player has lost only the unsaved positions, within the limit.
    func dropUnsavedPositions() {
        checkPositions()
        listening.dropUnsaved(stored: storedPositions)
    }

    // MARK: Device return without delays

    /// The behaviour of a device after its loss during playback.
    enum ReturnBehaviour: CaseIterable {
        case works
        /// The device can’t be used until a second later.
        case worksLater
        /// The device accepts sound, but playback doesn’t advance.
        case stalls
        /// The player is killed before the device returns.
        case afterKill
    }

    /// Disconnects the device during playback and reconnects it; does nothing if there is nothing to play.
    func loseDeviceWhilePlaying() throws {
        (fullDiskSteps, stepsUntilKill) = (0, 0)
        try passWithoutDelay(1)
        guard engine.sounding?.text == player.state.loadID, player.state.status == .playing, device.works,
            engine.length - engine.position > 100, !player.state.hasSleep, !player.state.nullOutput
        else { return }
        let position = engine.position
        let behaviour = ReturnBehaviour.allCases[random.below(4)]
        checks.log("the device is lost: \(behaviour)")
        checks.losses += 1
        device.disconnect(engine, listFirst: random.below(2) == 0)
        try passWithoutDelay(1)
        expectPaused(near: position, "its device was lost")
        if behaviour == .afterKill { try restartPlayer() }
        device.connect(engine, works: behaviour != .worksLater)
        if behaviour == .stalls { engine.setStalled(true) }
        try passWithoutDelay(0.7)
        expectPaused(near: position, "its device has just returned")
        try passWithoutDelay(0.8)
        if behaviour == .worksLater { device.connect(engine, works: true) }
        try passWithoutDelay(4)
        switch behaviour {
        case .works, .worksLater:
            let isMoving = engine.sounding?.text == early.player.loadID && engine.position > position + 1
            if early.player.status != .playing || !isMoving || engine.position > position + 8 || early.isWithoutDevice {
                checks.recordViolation("\(behaviour): \(early.player.status) at \(engine.position) after \(position)")
            }
        case .stalls:
            expectPaused(near: position, "its device didn’t play")
            engine.setStalled(false)
        case .afterKill: expectPaused(near: position, "it was restarted")
        }
    }

    private func expectPaused(near position: Double, _ why: String) {
        let player = early.player
        guard player.status == .paused, abs(player.anchor.position - position) < 1, early.isWithoutDevice else {
            return checks.recordViolation(
                "\(why) at \(position), and it is \(player.status) at \(player.anchor.position), reported: \(early.isWithoutDevice)"
            )
        }
    }

    /// Advances the time while every message arrives at once.
    private func passWithoutDelay(_ seconds: Double) throws {
        for _ in 0..<Int((seconds * 10).rounded()) {
            try arrive()
            try pass(0.1)
        }
        try arrive()
    }
}

extension MachineEvent where Input == PlaybackInput {
    /// The load whose remaining audio can’t be read.
    fileprivate var brokenLoad: String? {
        if case .input(.engine(.failed(let load, _))) = self { load.text } else { nil }
    }
}

extension SimulatedScreen {
    /// Whether an alert reports that there is no sound device.
    fileprivate var isWithoutDevice: Bool { alerts.values.contains { $0.code == FailureCode.noSoundDevice.rawValue } }
}
