# The tour of the README: a recorded session, compacted, explained, branched, exported.
sessile import examples/demo-session.jsonl --id tram --title "Slow start"
sessile compact tram --policy sliding_window
sessile stats tram
sessile why tram 8
sessile branch tram 21 --yes
echo "Try it without the cache." | sessile append tram -
sessile tree tram | grep ' user '
sessile export tram tram.html
