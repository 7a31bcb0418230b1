package import PodcastModel

/// Decodes and plays audio, one file at a time. Commands drive it, and it reports their outcome as events.
///
/// An engine makes no decisions. Commands take effect in order, and every event about a file names its load, so that
/// stale events are recognised. An engine uses no resources before its first `open`.
package protocol AudioEngine: Sendable {
    /// Queues a command and returns at once; may be called from any thread. It does nothing after `close()`.
    func perform(_ command: EngineCommand)
    /// Stops the engine and frees its resources; returns when no event can follow. It may be called again.
    func close() async
}

/// Receives an engine’s events on one of its threads; it must not block.
package typealias EngineObserver = @Sendable (EngineEvent) -> Void

/// A command to an engine. All but `open`, `listOutputs` and `ping` do nothing if no file is open.
package enum EngineCommand: Sendable, Hashable {
    /// Opens a file, which replaces the open one.
    case open(EngineLoad)
    case setPaused(Bool)
    /// Seeks exactly. The progress after the seek repeats `serial`.
    case seek(PlaybackPosition, serial: UInt64)
    /// Changes the speed without changing the pitch.
    case setSpeed(PlaybackSpeed)
    case setVolume(Volume)
    /// Selects a sound device by the engine’s name for it; empty means the system’s default.
    case setOutput(String)
    /// Changes the sound processing without a gap or a change of position.
    case setSound(EngineSound)
    /// Names the file that will be opened next, so that it can be opened in advance; nil if there is none. It makes no sound
    /// before the `open` of the same load, and doesn’t start by itself when the open file ends.
    case prepare(EngineLoad?)
    /// Reopens the sound device: the chosen one if it is available, else the system’s default.
    case reloadOutput
    /// Lists the devices of the sound systems and reports `outputs`; a file need not be open.
    case listOutputs
    /// Requests a `progress` now.
    case sample
    /// Requests a `pong` of this number when all commands before it have been carried out.
    case ping(UInt64)
    /// Closes the file without reporting an event.
    case unload
}

/// A file to open, and its initial settings.
package struct EngineLoad: Sendable, Hashable {
    /// The ID by which events name this load.
    package var id: LoadID
    package var source: AudioSource
    package var start = PlaybackPosition.zero
    package var paused = false
    package var speed = PlaybackSpeed.normal
    package var volume = Volume.full
    /// The engine’s name for the sound device; empty for the system’s default.
    package var output = ""
    package var sound = EngineSound()
    /// The serial number of progress until a seek. A load can be opened again; progress with an older number is stale.
    package var serial: UInt64 = 0
    /// The podcast whose user and password the server may require; empty if there is none.
    package var podcast = ""
    /// The user and password for the server; the shell looks them up.
    package var credentials: WebCredentials?

    /// The address or path for libmpv, which reads a user and password in the address only. FFmpeg doesn’t send these
    /// to another server after a redirect, unlike a header.
    var target: String {
        guard let credentials, case .web(let url) = source, let address = WebAddress(url) else {
            return source.description
        }
        return address.text(with: credentials)
    }
}

/// The sound processing other than the volume. It doesn’t change the position.
package struct EngineSound: Sendable, Hashable {
    /// The gain relative to the recording, in dB, from −20 to 20.
    var gain = 0.0
    /// Whether silence is shortened: the engine plays it faster, and its progress reports that speed.
    var trimSilence = false
    /// Whether quiet passages are made louder.
    var boost = false
    /// Whether all episodes are normalised to the same loudness.
    var normalise = false
}

/// An event that an engine reports.
package enum EngineEvent: Sendable, Hashable {
    /// The file is open and has audio, of this length (nil: unknown) and with these chapters.
    case opened(LoadID, MeasuredDuration?, chapters: [ChapterMark])
    /// The file’s length was corrected.
    case measured(LoadID, MeasuredDuration)
    /// The position. It is reported at every start and stop of the sound, after a seek, and in response to `sample`.
    case progress(LoadID, EngineProgress)
    /// The audio has ended and was heard to the last sample. `ReportedEnd` decides whether it is the episode’s end.
    case ended(LoadID, ReportedEnd)
    /// The file could not be opened, or can’t be played further; the engine has closed it.
    case failed(LoadID, Failure)
    case outputs(EngineOutputs)
    /// All commands before the `ping` of this number have been carried out.
    case pong(UInt64)
    /// The engine cannot be used, for example because its library is not installed. A later `open` retries.
    case unusable(Failure)
}

/// A length that the engine reports, and its reliability.
package struct MeasuredDuration: Sendable, Hashable {
    package enum Source: Sendable, Hashable {
        /// The file declares the length.
        case declared
        /// The length is computed from size and bit rate.
        case estimated
        /// The length that has been read so far: it grows, and doesn’t confirm an end.
        case partial
    }

    package var duration: EpisodeDuration
    package var source: Source

    package init(_ duration: EpisodeDuration, _ source: Source = .declared) {
        self.duration = duration
        self.source = source
    }
}

/// The engine’s position in its file.
package struct EngineProgress: Sendable, Hashable {
    /// The position that is heard at the time `at`.
    package var position: PlaybackPosition
    package var at: MonotonicTime
    /// Whether sound is played, so that the position advances.
    package var running: Bool
    /// Whether playback waits for data.
    package var buffering: Bool
    /// The serial number of the last completed seek since the file was opened; the load’s own if there was none.
    package var serial: UInt64
    /// The position up to which data has arrived, in seconds.
    package var cached: Double
    /// The speed at which the position advances; nil means the speed that is set.
    package var speed: PlaybackSpeed?

    package init(
        position: PlaybackPosition, at: MonotonicTime, running: Bool, buffering: Bool = false, serial: UInt64 = 0,
        cached: Double = 0, speed: PlaybackSpeed? = nil
    ) {
        self.position = position
        self.at = at
        self.running = running
        self.buffering = buffering
        self.serial = serial
        self.cached = cached
        self.speed = speed
    }
}

/// A sound device: the engine’s name for it, and its name for users.
package struct OutputDevice: Sendable, Hashable {
    package var name: String
    package var description: String

    package init(name: String, description: String) {
        self.name = name
        self.description = description
    }
}

/// The sound devices, and the one in use.
package struct EngineOutputs: Sendable, Hashable {
    /// All devices; nil if this report doesn’t list them.
    package var devices: [OutputDevice]?
    /// The device in use; empty for the system’s default, also if the chosen device isn’t available.
    package var inUse: String
    /// Whether there is no real device, so that nothing is heard; nil if unknown, for example while no device is open.
    package var silent: Bool?

    package init(devices: [OutputDevice]? = nil, inUse: String = "", silent: Bool? = false) {
        self.devices = devices
        self.inUse = inUse
        self.silent = silent
    }
}
