import BusKit
import OwnerKit
import PodcastModel
import WireMessages

extension PlaybackMachine {
    /// Sets the podcast's own speed, if the loaded episode's podcast has one, else that for all.
    mutating func setSpeed(_ factor: Double, _ command: Command) throws(Failure) {
        let setting = try settings.setting(speed: factor, of: session?.episode.podcastID ?? "")
        try change(setting, command, "The speed is \(setting.value)")
    }

    mutating func setSetting(_ setting: WireSetSetting, _ command: Command) throws(Failure) {
        try change(setting, command, "\(setting.key) is set")
    }

    private mutating func change(_ setting: WireSetSetting, _ command: Command, _ fact: String) throws(Failure) {
        let change = try settings.set(setting)
        if let change {
            pending.writes.mark(.setting(podcast: setting.podcast, key: setting.key))
            pending.publications += change.publications
            pending.commit = true
            applySettings()
        }
        let isChanged = change != nil
        answer(command, fact, changed: isChanged, setting: settings.reply(to: setting, changed: isChanged))
    }

    /// Applies the settings to the loaded episode.
    mutating func applySettings() {
        let podcast = session?.episode.podcastID ?? ""
        let speed = settings.speed(of: podcast)
        if speed != self.speed {
            self.speed = speed
            pending.state = true
            session?.setSpeed(speed, &pending)
        }
        let sound = settings.sound(of: podcast)
        if sound != self.sound {
            self.sound = sound
            pending.state = true
            if session?.engine == .open { pending.command(.setSound(EngineSound(sound))) }
        }
    }

    mutating func setVolume(_ percent: Double, _ command: Command) throws(Failure) {
        guard let volume = Volume(percent: percent) else {
            throw Self.invalid("The volume goes from 0 to 100, not \(percent).")
        }
        if volume != self.volume {
            self.volume = volume
            if session?.engine == .open { pending.command(.setVolume(heardVolume)) }
            pending.writes.mark(.settings)
            pending.state = true
        }
        answer(command, "The volume is \(volume.percent)")
    }

    static func invalid(_ message: String) -> Failure { Failure(.invalidArgument, message) }
}
