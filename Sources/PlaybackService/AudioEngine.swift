package import PodcastModel

/// Decodes and plays audio, one file at a time. Commands drive it, and it reports their outcome as events.
///
/// An engine decides nothing. Commands take effect in order, and every event about a file names its load, so that a late
/// one is recognised. An engine costs nothing before its first `open`.
package protocol AudioEngine: Sendable {
    /// Queues a command and returns at once; may be called from any thread. After `close()` nothing happens.
    func perform(_ command: EngineCommand)
    /// Stops the engine and frees everything; returns when no event can follow. May be called again.
    func close() async
}

/// Receives an engine’s events, on a thread of the engine’s: it must not block.
package typealias EngineObserver = @Sendable (EngineEvent) -> Void

/// A command to an engine. All but `open`, `listOutputs` and `ping` concern the open file and are ignored without one.
package enum EngineCommand: Sendable, Hashable {
    /// Replaces what is open.
    case open(EngineLoad)
    case setPaused(Bool)
    /// Moves, exactly. `serial` comes back in the progress that knows of it.
    case seek(PlaybackPosition, serial: UInt64)
    /// Changes the speed; the pitch stays.
    case setSpeed(PlaybackSpeed)
    case setVolume(Volume)
    /// Moves to another sound device, by the engine’s name for it; empty: the system’s default.
    case setOutput(String)
    /// Changes the sound processing, without a gap and without moving.
    case setSound(EngineSound)
    /// Names the file that will be opened next, so that it can be opened in advance; nil: none. It makes no sound before the
    /// `open` of the same load, and no `end` leads to it by itself.
    case prepare(EngineLoad?)
    /// Opens the sound device anew: the chosen one if it is there, else the system’s default.
    case reloadOutput
    /// Asks the sound systems for their devices, and reports `outputs`; works without an open file, too.
    case listOutputs
    /// Asks for a `progress` now.
    case sample
    /// Asks for a `pong` of this number when all commands before it have been carried out.
    case ping(UInt64)
    /// Closes the file, without an event.
    case unload
}

/// A file to open, and how it starts.
package struct EngineLoad: Sendable, Hashable {
    /// The load that its events name.
    package var id: LoadID
    package var source: AudioSource
    package var start = PlaybackPosition.zero
    package var paused = false
    package var speed = PlaybackSpeed.normal
    package var volume = Volume.full
    /// The sound device by the engine’s name; empty: the system’s default.
    package var output = ""
    package var sound = EngineSound()
    /// The serial number that its progress carries until a seek: a load can be opened again, and older progress is stale.
    package var serial: UInt64 = 0
    /// The podcast whose user and password the server may ask for; empty: of none.
    package var podcast = ""
    /// The user and password for the server; the shell looks them up.
    package var credentials: WebCredentials?

    /// The address or path as libmpv takes it, which reads a user and password in the address alone. FFmpeg sends them to no
    /// other server after a redirect, as it would a header.
    var target: String {
        guard let credentials, case .web(let url) = source, let address = WebAddress(url) else {
            return source.description
        }
        return address.text(with: credentials)
    }
}

/// The sound processing beside the volume. None of it moves the position.
package struct EngineSound: Sendable, Hashable {
    /// How much louder than recorded, in dB, from −20 to 20.
    var gain = 0.0
    /// Whether silence is passed over quickly: the engine plays it faster, and its progress says so.
    var trimSilence = false
    /// Whether quiet passages are made louder.
    var boost = false
    /// Whether all episodes are brought to the same loudness.
    var normalise = false
}

/// An event that an engine reports.
package enum EngineEvent: Sendable, Hashable {
    /// The file is open and has audio, of this length (nil: unknown) and with these chapters.
    case opened(LoadID, MeasuredDuration?, chapters: [ChapterMark])
    /// Its length turned out to be another.
    case measured(LoadID, MeasuredDuration)
    /// The position: at every start and halt of the sound, after a seek, and when asked to `sample`.
    case progress(LoadID, EngineProgress)
    /// The audio came to an end, and has been heard to the last sample. `EndOfFile` judges whether it is the episode’s end.
    case ended(LoadID, EndOfFile)
    /// It could not be opened, or nothing more can be played of it; it is closed.
    case failed(LoadID, Failure)
    case outputs(EngineOutputs)
    /// All commands before the `ping` of this number have been carried out.
    case pong(UInt64)
    /// The engine cannot be used, as when its library is not installed. A later `open` tries again.
    case unusable(Failure)
}

/// A length as the engine knows it, and how well.
package struct MeasuredDuration: Sendable, Hashable {
    package enum Source: Sendable, Hashable {
        /// The file says so.
        case declared
        /// Computed from size and bit rate.
        case estimated
        /// Only what has been read so far: it grows, and proves nothing.
        case growing
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
    /// The position that is heard at the moment `at`.
    package var position: PlaybackPosition
    package var at: MonotonicTime
    /// Whether sound goes out, so that the position moves.
    package var running: Bool
    /// Whether it waits for data although it should sound.
    package var buffering: Bool
    /// The last seek that has been carried out; the load’s own serial: none since the file was opened.
    package var serial: UInt64
    /// Up to where it has data, in seconds; it stands still while none comes.
    package var cached: Double
    /// How fast the position runs; nil: at the speed that is set.
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

/// A sound device: the engine’s name for it, and its name for people.
package struct OutputDevice: Sendable, Hashable {
    package var name: String
    package var description: String

    package init(name: String, description: String) {
        self.name = name
        self.description = description
    }
}

/// The sound devices, and what is in use.
package struct EngineOutputs: Sendable, Hashable {
    /// All devices; nil: not looked up this time.
    package var devices: [OutputDevice]?
    /// The device in use; empty: the system’s default, also where the chosen one is not there.
    package var inUse: String
    /// Whether there is no real device, so that nothing is heard; nil: not known, as while no device is open.
    package var silent: Bool?

    package init(devices: [OutputDevice]? = nil, inUse: String = "", silent: Bool? = false) {
        self.devices = devices
        self.inUse = inUse
        self.silent = silent
    }
}
