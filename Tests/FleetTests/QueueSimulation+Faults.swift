import EngineDouble
import OwnerKit
import PlaybackService
import PodcastModel
import WireMessages

/// Faults of the disk, the device and the files.
extension QueueSimulation {
    /// Causes or ends a fault; in one of three cases a service is killed soon after.
    func trouble() {
        switch random.below(8) {
        case 0: fullFor = 5 + random.below(60)
        case 1, 2: changeDevice()
        case 3, 4: if let source = sources.changeDownload(&random) { setFile(source) }
        case 5, 6: breakFile()
        default: if let source = sources.change(&random) { setFile(source) }
        }
        if diesIn == 0, random.below(3) == 0 { diesIn = 1 + random.below(25) }
    }

    private func setFile(_ source: AudioSource) {
        engine.setFile(source, sources.audio(source, &random))
    }

    private func changeDevice() {
        if device.works {
            checks.note("the sound device goes")
            device.lose(engine, listFirst: random.below(2) == 0)
        } else {
            checks.note("the sound device comes")
            device.bring(engine, works: random.below(4) > 0)
        }
    }

    /// Makes the rest of the playing downloaded file unreadable.
    private func breakFile() {
        guard case .file(let path)? = engine.source, path.hasPrefix("/downloads") else { return }
        checks.note("\(path) breaks")
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
        let isTold = early.alerts.values.contains { $0.code == "playsStream" && $0.episode == after.episode.id }
        let goesOn = after.isToPlay == before.isToPlay && after.status != .failed && after.loadID == before.loadID
        let place = listening.position(before, at: now.monotonic)
        guard !after.local, goesOn, isTold, abs(listening.position(after, at: now.monotonic) - place) < 0.01 else {
            return checks.recordViolation(
                "its file failed at \(place), and it is \(after.status) at \(after.anchor.position), told: \(isTold)")
        }
    }

    // MARK: Positions

    /// The stored positions of the episodes.
    private var storedPositions: [String: Double] {
        var positions = states.mapValues(\.position)
        if let record = playerRecords["session/current"],
            let session = try? WireSessionRecord(wireBytes: record.value), session.status != .finished,
            session.isKnown || session.isSought
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

    func checkPositions() { recordViolation(listening.judge(storedPositions, isSettled: isSaved)) }

    /// Checks that a killed player has lost only the unsaved positions, within the limit.
    func dropUnsavedPositions() {
        checkPositions()
        listening.forget(but: storedPositions)
    }

    // MARK: Device return without delays

    /// The behaviour of a device that was lost during playback.
    enum Return: CaseIterable {
        case works
        /// The device can’t be used until a second later.
        case worksLater
        /// The device accepts sound, but playback doesn’t advance.
        case stalls
        /// The player is killed before the device returns.
        case afterDeath
    }

    /// Disconnects the device during playback and reconnects it; does nothing if there is nothing to play.
    func loseDeviceWhilePlaying() throws {
        (fullFor, diesIn) = (0, 0)
        try calm(1)
        guard engine.sounding?.text == player.state.loadID, player.state.status == .playing, device.works,
            engine.length - engine.position > 100, !player.state.hasSleep, !player.state.nullOutput
        else { return }
        let place = engine.position
        let way = Return.allCases[random.below(4)]
        checks.note("the device is lost: \(way)")
        checks.losses += 1
        device.lose(engine, listFirst: random.below(2) == 0)
        try calm(1)
        expectPaused(near: place, "its device was lost")
        if way == .afterDeath { try restartPlayer() }
        device.bring(engine, works: way != .worksLater)
        if way == .stalls { engine.setStalled(true) }
        try calm(0.7)
        expectPaused(near: place, "its device had just come")
        try calm(0.8)
        if way == .worksLater { device.bring(engine, works: true) }
        try calm(4)
        switch way {
        case .works, .worksLater:
            let isMoving = engine.sounding?.text == early.player.loadID && engine.position > place + 1
            if early.player.status != .playing || !isMoving || engine.position > place + 8 || early.isWithoutDevice {
                checks.recordViolation("\(way): \(early.player.status) at \(engine.position) after \(place)")
            }
        case .stalls:
            expectPaused(near: place, "its device would not play")
            engine.setStalled(false)
        case .afterDeath: expectPaused(near: place, "it was restarted")
        }
    }

    private func expectPaused(near place: Double, _ why: String) {
        let player = early.player
        guard player.status == .paused, abs(player.anchor.position - place) < 1, early.isWithoutDevice else {
            return checks.recordViolation(
                "\(why) at \(place), and it is \(player.status) at \(player.anchor.position), told: \(early.isWithoutDevice)"
            )
        }
    }

    /// Advances the time while every message arrives at once.
    private func calm(_ seconds: Double) throws {
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
